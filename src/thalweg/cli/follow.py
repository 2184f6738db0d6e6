"""Follows a query over server-sent events, through restarts of the service: every row once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import NamedTuple

import httpx

from thalweg.cli.client import Service, Unreachable, quoted
from thalweg.cli.exits import FAILED, CommandFailed
from thalweg.cli.output import note, plain

_PAUSE_S = 1.0
_ROWS = ("message", "version")  # rows, and the end mark of a version


class Event(NamedTuple):
    kind: str
    id: str | None
    data: str | None


def parse_events(lines: Iterator[str]) -> Iterator[Event]:
    """The events of a stream."""
    kind, id_, data = "message", None, []
    for line in lines:
        if line:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                kind = value
            elif field == "id":
                id_ = value
            elif field == "data":
                data.append(value)
        else:
            if id_ is not None or data:
                yield Event(kind, id_, "\n".join(data) if data else None)
            kind, id_, data = "message", None, []


def follow_results(
    service: Service, query: str, after: str | None, give_up_s: float
) -> Iterator[tuple[str, str | None]]:
    """(id, JSON line with the id, or None where only the id moved on)."""
    path = f"/queries/{quoted(query)}/results"
    lost_since: float | None = None
    while True:
        try:
            headers = {"Last-Event-ID": after} if after else {}
            with service.stream(path, headers=headers) as answer:
                if lost_since is not None:
                    note("reached again")
                lost_since = None
                for event in parse_events(answer.iter_lines()):
                    if event.kind == "gap":
                        since = json.loads(event.data or "{}").get("complete_from")
                        note(f"[yellow]results before {plain(str(since))} are no longer kept[/]")
                        continue
                    if event.kind == "end":
                        _end(query, event)
                        return
                    after = event.id or after
                    if after is not None:
                        yield (
                            after,
                            _with_id(after, event.data if event.kind in _ROWS else None),
                        )
        except (httpx.TransportError, Unreachable) as error:
            reason = str(error) or type(error).__name__
            if lost_since is None:
                note(f"[yellow]lost the service ({reason}), trying again[/]")
        now = time.monotonic()
        lost_since = now if lost_since is None else lost_since
        if now - lost_since > give_up_s:
            raise Unreachable(service.url, f"gone for {give_up_s:g} s")
        time.sleep(_PAUSE_S)


def _with_id(id_: str, data: str | None) -> str | None:
    return None if data is None else f'{{"id":"{id_}",{data[1:]}'


def _end(query: str, event: Event) -> None:
    reason = json.loads(event.data or "{}").get("reason", "ended")
    if reason == "parked":
        raise CommandFailed(f"{query} is parked: `thalweg ps` says why", FAILED)
    note(f"{query} {reason}")
