"""Why a query has no rows: for what it waits; and waiting for what was just pushed."""

from __future__ import annotations

import time
from typing import Any

from thalweg.cli.client import Service, quoted

LONGEST_WAIT_S = 10.0


def wait_for_backlog(service: Service, query: str) -> None:
    """What was pushed before this command is worked through first, unless there is too much."""
    until = time.monotonic() + LONGEST_WAIT_S
    while time.monotonic() < until:
        described = service.get(f"/queries/{quoted(query)}")
        streams = [s for s in service.get("/streams") if s["name"] in described["streams"]]
        has_ended = all(s["state"] == "ended" for s in streams)
        is_done = described["state"] in ("finished", "parked") or not has_ended
        if is_done and not any(s["backlog"] for s in streams):
            return
        time.sleep(0.05)


def why_no_rows(service: Service, query: dict[str, Any]) -> str:
    if query["state"] == "parked":
        return f"it is parked ({query['error']})"
    if query["state"] == "finished":
        return "its streams have ended, and nothing matched"
    streams = [s for s in service.get("/streams") if s["name"] in query["streams"]]
    silent = [s for s in streams if not s["arrived"] and s["state"] != "ended"]
    if silent:
        names = _listed(s["name"] for s in silent)
        has = "no tuple has" if len(silent) == 1 else "none of them has a tuple that has"
        return f"it waits for {names}: {has} come yet"
    behind = min(streams, key=lambda s: s["watermark"] or "")
    if query["frontier"] is None:
        at = behind["watermark"] or "its first tuple"
        return f"it waits for time to pass: {behind['name']} is at {at}, which is not final yet"
    return (
        f"nothing matched up to {query['frontier']}; what is later becomes final when "
        f"{behind['name']} goes on (it is at {behind['watermark']})"
    )


def _listed(names: Any) -> str:
    found = list(names)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"
