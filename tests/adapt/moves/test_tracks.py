"""What a plan says with an old part, and what it says without, is what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.adapt.moves.test_spreading import arrivals, plan_of

from thalweg.adapt.moves.tracks import NotOnTracks, both, check, old_track, old_until
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import Change
from thalweg.plan import nodes
from thalweg.plan.nodes import Node

LINEAR = [
    "SELECT item, price + 1 AS more FROM Bids [Range 20] WHERE price > 1",
    "SELECT B.item, B.price FROM Bids [Range 20] B, Sold [Range 9] S WHERE B.item = S.item",
    "SELECT B.price, X.price FROM Bids [Range 20 Slide 5] B, Sold [Range 9] S, Seen [Range 5] X "
    "WHERE B.item = S.item AND S.item = X.item",
    "SELECT item, price FROM Bids [Range 12] UNION ALL SELECT B.item, X.price "
    "FROM Bids [Range 7] B, Seen [Range 15] X WHERE B.item = X.item AND B.price < X.price",
    "SELECT S.who, B.price FROM Sold [Now] S, (SELECT item, price FROM Bids [Range 12] UNION ALL "
    "SELECT item, price FROM Seen [Range 20]) B WHERE B.item = S.item",
]
NOT_LINEAR = {
    "SELECT item, COUNT(*) AS n FROM Bids [Range 15] GROUP BY item": "Aggregate",
    "SELECT item FROM Bids [Rows 5]": "no instant at which they are gone",
    "SELECT item FROM Bids [Unbounded]": "no instant at which they are gone",
    "SELECT DISTINCT item FROM Bids [Range 5]": "Distinct",
}


Inputs = dict[str, list[Arrival]]


def new_track(plan: Node, tau: int, inputs: Inputs) -> list[Change]:
    """A query that begins at τ without a past."""
    late = {name: [a for a in rows if a.timestamp >= tau] for name, rows in inputs.items()}
    return list(reference.evaluate(plan, late))


def on_old_track(plan: Node, tau: int, inputs: Inputs) -> list[Change]:
    """With instants and positions as columns like others."""

    def plain(node: Node) -> Node:
        if isinstance(node, nodes.Scan):
            return nodes.Scan(replace(node.stream, is_placed=False))
        return node

    told = {
        name: [replace(a, row=(*a.row, a.timestamp, a.position)) for a in rows]
        for name, rows in inputs.items()
    }
    return list(reference.evaluate(nodes.transform(old_track(plan, tau), plain), told))


def netted(changes: list[Change]) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for change in changes:
        key = change.ts, change.row
        found[key] = found.get(key, 0) + (1 if change.op == "+" else -1)
    return {key: n for key, n in found.items() if n}


@pytest.mark.parametrize("text", LINEAR)
@pytest.mark.parametrize("tau", [0, 7, 20, 33, 100])
def test_two_tracks_add_up_to_the_plan(text: str, tau: int) -> None:
    plan = plan_of(text)
    inputs = arrivals(tau)
    tracks = [*on_old_track(plan, tau, inputs), *new_track(plan, tau, inputs)]
    assert netted(tracks) == netted(list(reference.evaluate(plan, inputs)))


@pytest.mark.parametrize("text", LINEAR)
def test_the_old_track_is_silent_once_its_windows_have_passed(text: str) -> None:
    plan, tau = plan_of(text), 21
    until = old_until(plan, tau)
    longest = max(
        n.spec.length + n.spec.slide  # type: ignore[union-attr, operator]
        for n in nodes.walk(plan)
        if isinstance(n, nodes.Window)
    )
    assert tau < until <= tau + longest
    instants = [c.ts for c in on_old_track(plan, tau, arrivals(3))]
    assert instants
    assert max(instants) <= until


def test_the_old_track_has_the_plan_s_columns() -> None:
    plan = plan_of(LINEAR[1])
    assert old_track(plan, 5).schema == plan.schema == both(plan, old_track(plan, 5)).schema


@pytest.mark.parametrize(("text", "why"), NOT_LINEAR.items())
def test_what_does_not_add_up_or_never_ends_is_refused(text: str, why: str) -> None:
    with pytest.raises(NotOnTracks, match=why) as told:
        check(plan_of(text))
    assert "precopy" in str(told.value)
