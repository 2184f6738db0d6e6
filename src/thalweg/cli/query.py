"""thalweg query: a SELECT that is answered once."""

from __future__ import annotations

from typing import Annotated

import typer

from thalweg.cli import exact_json
from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.exits import reporting
from thalweg.cli.results import show_content


def query(
    text: Annotated[str, typer.Argument(help="One SELECT, in quotes.")],
    limit: Annotated[int | None, typer.Option(min=1, help="Show so many rows.")] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Answer a SELECT once, as of the last instant that is final for all that it reads.

    FROM may name standing queries (their results), relations, views, and streams under a window of
    which all is still kept. Nothing is registered.
    """
    with reporting(), Service(url) as service:
        answer = service.request("POST", "/query", content=text.encode())
        show_content(exact_json.read(answer.text), limit, as_json)
