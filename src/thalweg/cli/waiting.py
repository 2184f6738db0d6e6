"""Waiting for what was just pushed."""

from __future__ import annotations

import time

from thalweg.cli.client import Service, quoted

LONGEST_WAIT_S = 10.0


def wait_for_backlog(service: Service, query: str) -> None:
    """What was pushed before this command is worked through first, unless there is too much."""
    until = time.monotonic() + LONGEST_WAIT_S
    while time.monotonic() < until:
        described = service.get(f"/queries/{quoted(query)}")
        streams = [s for s in service.get("/streams") if s["name"] in described["streams"]]
        has_ended = all(s["state"] == "ended" for s in streams)
        is_done = described["state"] in ("finished", "parked", "lost") or not has_ended
        if is_done and not any(s["backlog"] for s in streams):
            return
        time.sleep(0.05)
