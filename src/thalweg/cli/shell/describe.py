r"""\d: what stands, and what one of it is."""

from __future__ import annotations

from typing import Any

from thalweg.cli.client import Service
from thalweg.cli.exits import BAD_INPUT, CommandFailed
from thalweg.cli.instants import Instants
from thalweg.plan.lengths import duration_text

_MILLISECOND_US = 1_000


def overview(service: Service) -> str:
    rows = [(s["kind"], s["name"], s["state"], _columns(s)) for s in service.get("/streams")]
    rows += [("view", v["name"], "", _columns(v)) for v in service.get("/views")]
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
    for kind, lines in _KINDS.items():
        for found in service.get(f"/{kind}"):
            if found["name"].lower() == name.lower():
                return "\n".join(lines(found))
    raise CommandFailed(f"there is no stream, view, query or sink {name}", BAD_INPUT)


def _stream(found: dict[str, Any]) -> list[str]:
    us = found.get("resolution_us", _MILLISECOND_US)  # of a node that is away, little is known
    instant = "" if us == _MILLISECOND_US else f", an instant is {duration_text(us)}"
    stamp = None if found["kind"] == "table" else found.get("timestamp")
    return [
        f"{found['kind']} {found['name']}, {found['state']}",
        *_each_column(found),
        *_line("timestamp", stamp and f"{stamp}{instant}"),
        *_line("source", found["source"] or "push"),
        *_line("arrived", _counts(found)),
        *_line("watermark", found["watermark"]),
        *_line("error", found["error"]),
    ]


def _counts(found: dict[str, Any]) -> str:
    kinds = {"backlog": "waiting for a tick", "late": "late", "rejected": "rejected"}
    parts = [f"{found[key]:,} {words}" for key, words in kinds.items() if found[key]]
    return f"{found['arrived']:,}" + (f" ({', '.join(parts)})" if parts else "")


def _view(found: dict[str, Any]) -> list[str]:
    return [f"view {found['name']}", *_each_column(found), found["text"]]


def _query(found: dict[str, Any]) -> list[str]:
    version = f", version {found['version']}" if found.get("version", 1) > 1 else ""
    started = found.get("started")
    rows = "counted when they are read" if found["rows"] is None else f"{found['rows']:,}"
    return [
        f"query {found['name']}{version}, {found['state']}",
        *_each_column(found),
        *_line("result", f"{found['kind']} over {', '.join(found['streams'])}".strip()),
        *_line("rows", rows),
        *_line("from", None if started is None else Instants(found).text(started)),
        *_line("final up to", found["frontier"]),
        *_line("complete from", found["complete_from"]),
        *_line("group", found["group"]),
        *_line("cost", f"{found['cost_s']:.3g} s"),
        *_line("delay", _delay_words(found)),
        *(line for sink in found["sinks"] for line in _line("sink", _sink_words(sink))),
        *_line("error", found["error"]),
        found["text"],
    ]


def _delay_words(found: dict[str, Any]) -> str | None:
    if found["pr"] is None:
        return None
    between = f", {found['cpr']:.3g} of it between nodes" if found["cpr"] else ""
    return f"{found['delay_ms']:,.0f} ms, {found['pr']:,.3g} times the work{between}"


def _sink(found: dict[str, Any]) -> list[str]:
    options = ", ".join(f"{key} {value}" for key, value in found["options"].items())
    return [
        f"sink {found['name']}, {'given up' if found['error'] else 'writing'}",
        *_line("query", found["query"]),
        *_line("target", found["target"]),
        *_line("folder", found["folder"]),
        *_line("options", options),
        *_line("error", found["error"]),
    ]


def _sink_words(sink: dict[str, Any]) -> str:
    return f"{sink['name']} → {sink['target']}" + (f": {sink['error']}" if sink["error"] else "")


def _line(key: str, value: str | None) -> list[str]:
    return [f"{key:<14} {value}"] if value else []


def _each_column(found: dict[str, Any]) -> list[str]:
    widest = max((len(name) for name, _ in found["columns"]), default=0)
    return [f"  {name:<{widest}}  {type_}" for name, type_ in found["columns"]]


def _columns(found: dict[str, Any]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in found["columns"])


_KINDS = {"streams": _stream, "views": _view, "queries": _query, "sinks": _sink}
