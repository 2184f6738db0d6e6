r"""\d: what stands, and what one of it is."""

from __future__ import annotations

from typing import Any

from thalweg.cli.client import Service
from thalweg.cli.exits import BAD_INPUT, CommandFailed

_HIDDEN = ("columns", "text", "resolution_us", "is_temporal", "flow")


def overview(service: Service) -> str:
    rows = [(s["kind"], s["name"], s["state"], _columns(s)) for s in service.get("/streams")]
    rows += [("query", q["name"], q["state"], _columns(q)) for q in service.get("/queries")]
    rows += [
        ("sink", s["name"], s["error"] or "writing", f"{s['query']} → {s['target']}")
        for s in service.get("/sinks")
    ]
    if not rows:
        return "nothing stands: CREATE STREAM … makes a stream"
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return "\n".join(
        "  ".join((*(row[i].ljust(widths[i]) for i in range(3)), row[3])).rstrip() for row in rows
    )


def describe(service: Service, name: str) -> str:
    for kind in ("streams", "queries", "sinks"):
        for found in service.get(f"/{kind}"):
            if found["name"].lower() == name.lower():
                return "\n".join(_lines(found))
    raise CommandFailed(f"there is no stream, query or sink {name}", BAD_INPUT)


def _lines(found: dict[str, Any]) -> list[str]:
    shown = {
        k: v for k, v in found.items() if k not in ("columns", "text") and v not in (None, [], {})
    }
    lines = [f"{key:<12} {value}" for key, value in shown.items()]
    lines += [f"column        {column} {type_}" for column, type_ in found.get("columns", [])]
    return [*lines, *([found["text"]] if found.get("text") else [])]


def _columns(found: dict[str, Any]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in found["columns"])
