"""How far a reader of a stream is behind the stream's home."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime


def lag_text(here: str | None, at_home: str | None) -> str | None:
    """Of two watermarks as the service tells them; None if one of them is not known."""
    if at_home is None:
        return None
    if here is None:
        return "nothing yet"
    if here == at_home:
        return "up to date"
    try:
        behind = int(at_home) - int(here)
        return f"{behind:,} instants behind" if behind > 0 else "up to date"
    except ValueError:
        pass
    try:
        seconds = (datetime.fromisoformat(at_home) - datetime.fromisoformat(here)).total_seconds()
    except (ValueError, TypeError):  # the end of time is no date
        return None
    return f"{seconds:,.3g} s behind" if seconds > 0 else "up to date"


def with_lags(nodes: list[dict[str, object]], marks: Mapping[str, str | None]) -> None:
    """Tell each link of nodes its lag; `marks` are the streams' watermarks at their homes."""
    for node in nodes:
        for link in node["links"]:  # type: ignore[attr-defined]
            at_home = link.get("at_home") or marks.get(link["stream"].lower())
            link["lag"] = lag_text(link["watermark"], at_home)
