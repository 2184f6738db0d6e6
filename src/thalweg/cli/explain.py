"""thalweg explain: how a query is computed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url, quoted
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.output import emit


class Form(StrEnum):
    logical = "logical"
    physical = "physical"
    spark = "spark"


def explain(
    query: Annotated[str | None, typer.Argument(help="A standing query, or a .cql file.")] = None,
    text: Annotated[str | None, typer.Option("--execute", "-e", help="CQL to explain.")] = None,
    form: Annotated[Form, typer.Option(help="Which plan.")] = Form.logical,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show how a query is, or would be, computed. Nothing is registered."""
    params = {"form": form.value, "format": "json" if as_json else "text"}
    with reporting(), Service(url) as service:
        if (query is None) == (text is None):
            raise CommandFailed("give a query's name, a .cql file, or -e TEXT", BAD_INPUT)
        if query is not None and query.endswith(".cql") and Path(query).is_file():
            text = Path(query).read_text()
        if text is not None:
            answer = service.request("POST", "/explain", params=params, content=text.encode())
        else:
            path = f"/queries/{quoted(query or '')}/explain"
            answer = service.request("GET", path, params=params)
        emit(answer.text.rstrip("\n"))
