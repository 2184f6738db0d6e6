"""thalweg network fidelity: how faithful readers are to the homes of their streams."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.exits import reporting
from thalweg.cli.output import emit_json, emit_table


def fidelity(
    period_s: Annotated[
        float, typer.Option("--period", min=0.1, max=3600, help="Seconds that a period has.")
    ] = 10.0,
    periods: Annotated[int, typer.Option(min=1, max=100, help="How many, up to now.")] = 3,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show for which share of time each reader had all rows that its stream's home had for it."""
    with reporting(), Service(url) as service:
        found = service.get("/network/fidelity", period_s=period_s, periods=periods)
        if as_json:
            emit_json(found)
            return
        columns = [
            ("STREAM", "left"),
            ("READER", "left"),
            ("FROM", "left"),
            ("SECONDS AGO", "right"),
            ("FIDELITY", "right"),
            ("DELAY", "right"),
            ("WAITS THERE", "right"),
            ("BUSY", "right"),
        ]
        emit_table(columns, map(_row, found), empty="no stream is read at another node")


def _row(told: dict[str, Any]) -> tuple[object, ...]:
    until = told["ago_s"] - told["period_s"]
    return (
        told["stream"],
        told["reader"],
        told["from"],
        f"{told['ago_s']:g}-{until:g}",
        "not yet" if told["fidelity"] is None else f"{told['fidelity']:.1%}",
        "" if told["delay_ms"] is None else f"{told['delay_ms']:,.1f} ms",
        f"{told['hop_ms']:,.1f} ms",
        f"{told['busy']:.0%}",
    )
