"""Why a query has no rows: for what it waits. Of statuses as the service describes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Status = Mapping[str, Any]


def why_no_rows(query: Status, streams: Iterable[Status]) -> str:
    """`streams` are all there are; those that the query reads matter."""
    if query["state"] == "parked":
        return f"it is parked ({query['error']})"
    if query["state"] == "lost":
        return str(query["error"])
    if query["state"] == "finished":
        return "its streams have ended, and nothing matched"
    streams = [s for s in streams if s["name"] in query["streams"]]
    silent = [s for s in streams if not s["arrived"] and s["state"] != "ended"]
    if silent:
        names = _listed(s["name"] for s in silent)
        has = "no tuple has" if len(silent) == 1 else "none of them has a tuple that has"
        return f"it waits for {names}: {has} come yet"
    behind = min(streams, key=lambda s: s["watermark"] or "")
    if query["frontier"] is None:
        at = behind["watermark"] or "its first tuple"
        return (
            f"it waits for time to pass: {behind['name']} is at {at}, which is not final yet "
            "(a later tuple, a heartbeat or IDLE moves it on)"
        )
    return (
        f"nothing matched up to {query['frontier']}; what is later becomes final when "
        f"{behind['name']} goes on (it is at {behind['watermark']})"
    )


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"
