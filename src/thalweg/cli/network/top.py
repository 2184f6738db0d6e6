"""thalweg network top: what nodes use, in all and by fragment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.exits import reporting
from thalweg.cli.output import emit_lines, emit_table

_COLUMNS = [
    ("NODE", "left"),
    ("FRAGMENT", "left"),
    ("CORES", "right"),
    ("IN", "right"),
    ("OUT", "right"),
    ("MEMORY", "right"),
    ("STATE", "right"),
]


def top(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """What each node uses, since anybody last asked: cores of ticks, rows from and to other nodes,
    and the memory of its process; below it the fragments that it computes for others, with what
    comes in for them and their state. The busiest first."""
    with reporting(), Service(url) as service:
        loads = sorted(service.get("/network/loads"), key=lambda n: -float(n["cores"]))
        if as_json:
            emit_lines(loads)
            return
        rows = (row for load in loads for row in _rows(load))
        emit_table(_COLUMNS, rows, empty="no node answers")


def _rows(load: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    limit = load["memory_limit"]
    memory = _megabytes(load["memory_bytes"]) + (f" of {_megabytes(limit)}" if limit else "")
    yield load["node"], "", _cores(load), _bits(load["in_bps"]), _bits(load["out_bps"]), memory, ""
    for part in sorted(load["fragments"], key=lambda f: -float(f["cores"])):
        state = _megabytes(part["state_bytes"])
        yield "", part["fragment"], _cores(part), _bits(8 * part["bytes_per_s"]), "", "", state


def _cores(of: dict[str, Any]) -> str:
    return f"{of['cores']:.3f}"


def _megabytes(count: float) -> str:
    return f"{count / 1e6:,.1f} MB"


def _bits(per_s: float) -> str:
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if per_s >= size:
            return f"{per_s / size:.3g} {unit}"
    return f"{per_s:.0f} bit/s"
