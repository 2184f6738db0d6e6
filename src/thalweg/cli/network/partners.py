"""thalweg network partners: who balances with whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.exits import reporting
from thalweg.cli.output import emit_json, emit_table

_COLUMNS = [
    ("NODE", "left"),
    ("LOAD", "right"),
    ("MEAN", "right"),
    ("PR_MAX", "right"),
    ("ROUNDS", "right"),
    ("PARTNERS", "left"),
]


def partners(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Whom each node balances with (`--controller partners`): the busy share of its time, the mean
    of its partners and itself, its worst performance ratio; those it asked for first."""
    with reporting(), Service(url) as service:
        found = service.get("/network/partners")
        if as_json:
            emit_json(found)
            return
        rows = (_row(told) for told in sorted(found, key=lambda t: -float(t["load"])))
        emit_table(_COLUMNS, rows, empty="nobody has partners: --controller partners")


def _row(told: dict[str, Any]) -> tuple[object, ...]:
    numbers = (f"{told[n]:.2f}" for n in ("load", "mean"))
    name = f"{told['node']} (advises)" if told["advises"] else told["node"]
    worst, named = f"{told['pr_max']:.3g}", ", ".join(_named(told))
    return name, *numbers, worst, told["rounds"], named


def _named(told: dict[str, Any]) -> Iterator[str]:
    loads, asked_for = told["partners"], told["asked_for"]
    for name in [*asked_for, *sorted(n for n in loads if n not in asked_for)]:
        yield f"{name} {loads[name]:.2f}"
