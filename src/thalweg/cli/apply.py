"""thalweg apply: files are what shall stand."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.cql_inputs import files_of, texts_of
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.output import complain_at, emit, emit_json, note

_SIGNS = {"create": "+", "alter": "~", "replace": "~", "recreate": "!", "drop": "-"}


def apply(
    paths: Annotated[
        list[str], typer.Argument(help="Files, folders (all .cql files below them), or -.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Make the files what stands: create, alter, replace and drop, in one transaction.

    Prints a line for each change (+ create, ~ alter or replace, ! recreate with loss, - drop) and
    the state that is lost with it. What stands as the files say is left alone: a second time there
    is nothing to do.
    """
    with reporting(), Service(url) as service:
        texts = list(texts_of(files_of(paths), []))
        body = {"texts": [{**t._asdict(), "folder": str(t.folder)} for t in texts]}
        answer = service.try_request(
            "POST", "/apply", params={"dry_run": str(dry_run).lower()}, json=body
        )
        if answer.is_error and "errors" in (problem := answer.json()):
            for error in problem["errors"]:
                complain_at(error["text"])
            raise CommandFailed("nothing was applied", BAD_INPUT)
        done = service.checked(answer).json()
        if as_json:
            emit_json(done)
            return
        for step in done["steps"]:
            emit(_line(step))
        _tell(done, dry_run)


def _line(step: dict[str, Any]) -> str:
    detail = f": {step['detail']}" if step["detail"] else ""
    lost = step["lost"]
    cost = ""
    if step["do"] in ("replace", "recreate", "drop"):
        kept = (
            f"{lost['rows']:,} rows of state, {lost['bytes']:,} bytes" if lost["rows"] else "none"
        )
        cost = f"  (state lost: {kept})"
    return f"{_SIGNS[step['do']]} {step['do']} {step['kind']} {step['name']}{detail}{cost}"


def _tell(done: dict[str, Any], dry_run: bool) -> None:
    count, same = len(done["steps"]), done["unchanged"]
    if not count:
        note(f"[green]✓[/] nothing to do: {same:,} stand as the files say")
    elif dry_run:
        note(f"{count:,} to change, {same:,} as the files say; nothing was done (--dry-run)")
    else:
        note(f"[green]✓[/] {count:,} changed, {same:,} as they were")
