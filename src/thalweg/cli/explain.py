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
    shared = "shared"


def explain(
    query: Annotated[str | None, typer.Argument(help="A standing query, or a .cql file.")] = None,
    text: Annotated[str | None, typer.Option("--execute", "-e", help="CQL to explain.")] = None,
    form: Annotated[Form, typer.Option(help="Which plan.")] = Form.logical,
    shared: Annotated[
        bool, typer.Option("--shared", help="The groups, or the one that answers the query.")
    ] = False,
    why: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="Why two standing queries share work, or do not."),
    ] = None,
    placed: Annotated[
        bool, typer.Option("--placed", help="In a network: where it runs, and what it reads.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show how a query is, or would be, computed. Nothing is registered."""
    wanted = "json" if as_json else "text"
    params = {"form": "shared" if shared else form.value, "format": wanted}
    with reporting(), Service(url) as service:
        if why is not None:
            if query is not None or text is not None or shared:
                raise CommandFailed("--why takes two standing queries, and nothing else", BAD_INPUT)
            path = f"/queries/{quoted(why[0])}/why/{quoted(why[1])}"
            emit(service.request("GET", path, params={"format": wanted}).text.rstrip("\n"))
            return
        if placed:
            if query is None or text is not None or shared:
                raise CommandFailed("--placed takes one standing query", BAD_INPUT)
            path = f"/queries/{quoted(query)}/placed"
            emit(service.request("GET", path, params={"format": wanted}).text.rstrip("\n"))
            return
        if shared and query is None and text is None:
            emit(service.request("GET", "/groups", params={"format": wanted}).text.rstrip("\n"))
            return
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
