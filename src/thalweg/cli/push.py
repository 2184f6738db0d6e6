"""thalweg push: tuples from JSON lines into a stream."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url, quoted
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.output import emit_json, note, plain

_NDJSON = {"content-type": "application/x-ndjson"}


def push(
    stream: Annotated[str, typer.Argument(help="A stream or relation without a source.")],
    file: Annotated[str, typer.Argument(help="JSON lines, or - for stdin.")] = "-",
    batch_rows: Annotated[int, typer.Option(min=1, help="Rows to a batch.")] = 5_000,
    batch_id: Annotated[
        str | None,
        typer.Option(help="A name for this input: pushed again under it, it counts once."),
    ] = None,
    partition: Annotated[int, typer.Option(min=0, help="Of the source.")] = 0,
    finish: Annotated[
        bool, typer.Option("--finish", help="Promise that nothing follows, ever.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Push tuples: a batch is durable when it is acknowledged. Waits while the engine is behind.

    A line that is no tuple is rejected, and the others are taken; then the exit code is 2.
    """
    total = {"accepted": 0, "late": 0, "rejected": 0, "repeated": 0}
    reason: str | None = None
    with reporting(), Service(url) as service:
        path = f"/streams/{quoted(stream)}"
        for number, batch in enumerate(_batches(file, batch_rows)):
            params: dict[str, Any] = {"partition": partition}
            if batch_id is not None:
                params["batch_id"] = f"{batch_id}/{batch_rows}/{number}"
            body = "".join(batch).encode()
            receipt = _patiently(service, f"{path}/tuples", params, body)
            for name in total:
                total[name] += int(receipt[name])
            if reason is None and receipt["reason"] is not None:
                line = number * batch_rows + int(receipt.get("line", 0))
                reason = f"line {line}: {receipt['reason']}"
        if finish:
            service.request("POST", f"{path}/finish")
    if as_json:
        emit_json({**total, "reason": reason})
    else:
        note(f"{total['accepted']} accepted, {total['late']} late, {total['rejected']} rejected")
        if total["late"]:
            note("late tuples are older than what is final; they are set aside and change nothing")
        if reason is not None:
            note(f"[red]{plain(reason)}[/] (all rejected ones: GET {path}/rejects)")
    if total["rejected"]:
        raise typer.Exit(BAD_INPUT)


def _patiently(service: Service, path: str, params: dict[str, Any], body: bytes) -> dict[str, Any]:
    """Again, for as long as the service says that it is behind."""
    while True:
        answer = service.try_request("POST", path, params=params, content=body, headers=_NDJSON)
        if answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
            return dict(service.checked(answer).json())
        time.sleep(float(answer.headers.get("retry-after", "1")))


def _batches(file: str, size: int) -> Iterator[list[str]]:
    """One at least: among peers, who has nothing to say yet is a source all the same."""
    if file == "-":
        yield from _chunks(sys.stdin, size)
        return
    try:
        with Path(file).open() as lines:
            yield from _chunks(lines, size)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CommandFailed(f"can't read {file}: {reason}", BAD_INPUT) from None


def _chunks(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    left = iter(lines)
    yield list(islice(left, size))
    while batch := list(islice(left, size)):
        yield batch
