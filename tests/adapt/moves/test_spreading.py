"""An operator that is spread over nodes says what it would say at one: judged by the reference."""

from __future__ import annotations

import random
from typing import Any

import pytest

from thalweg.adapt.moves.spreading import (
    CannotSpread,
    buckets_of,
    part_of,
    ranges,
    spreadable,
    united,
)
from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.plan.nodes import Aggregate, Distinct, Join, LeftJoin, Node, ToStream
from thalweg.plan.wanted_rows import wanted_rows

STREAMS = (
    "CREATE STREAM Bids (item BIGINT, price BIGINT, who VARCHAR) TIMESTAMP BY ts BIGINT; "
    "CREATE STREAM Sold (item BIGINT, who VARCHAR) TIMESTAMP BY ts BIGINT; "
    "CREATE STREAM Seen (item BIGINT, price BIGINT) TIMESTAMP BY ts BIGINT"
)
SPREAD = {
    "SELECT B.item, B.price FROM Bids [Range 20] B, Sold [Range 9] S WHERE B.item = S.item": Join,
    "SELECT ISTREAM B.price FROM Bids [Range 20] B, Sold [Range 9] S, Seen [Range 5] X "
    "WHERE B.item = S.item AND S.item = X.item": Join,
    "SELECT item, COUNT(*) AS n, MAX(price) AS top FROM Bids [Range 15] GROUP BY item": Aggregate,
    "SELECT DSTREAM who, SUM(price) AS s FROM Bids [Range 30 Slide 5] GROUP BY who": Aggregate,
    "SELECT DISTINCT item, who FROM Bids [Range 12]": Distinct,
    "SELECT COUNT(*) AS n FROM Bids [Range 20] B, Sold [Range 9] S WHERE B.item = S.item": Join,
    "SELECT S.item, B.price FROM Sold [Range 9] S LEFT JOIN Bids [Range 20] B "
    "ON S.item = B.item": LeftJoin,
    "SELECT S.item, COUNT(*) AS n FROM Bids [Partition By item Rows 3] B, Sold [Unbounded] S "
    "WHERE B.item = S.item GROUP BY S.item": Aggregate,
}


def plan_of(text: str) -> Node:
    (query,) = compile_script(f"{STREAMS}; CREATE QUERY q AS {text}").queries
    return query.plan


def arrivals(seed: int, rows: int = 60) -> dict[str, list[Arrival]]:
    chance = random.Random(seed)

    def row(name: str) -> tuple[Any, ...]:
        item = chance.choice([None, 1, 2, 3, 4, 5, 6, 7])
        who = chance.choice([None, "anna", "bert", "carl"])
        price = chance.randint(1, 4)
        return {"Bids": (item, price, who), "Sold": (item, who), "Seen": (item, price)}[name]

    return {
        name: [Arrival(0, i + chance.randint(0, 1), i, row(name)) for i in range(0, rows, 2)]
        for name in ("Bids", "Sold", "Seen")
    }


def said(plan: Node, inputs: dict[str, list[Arrival]]) -> list[Any]:
    return sorted(((c.ts, c.op, c.row) for c in reference.evaluate(plan, inputs)), key=repr)


@pytest.mark.parametrize("text", SPREAD)
@pytest.mark.parametrize("parts", [1, 3])
def test_the_union_of_all_parts_is_the_operator(text: str, parts: int) -> None:
    plan = plan_of(text)
    found = spreadable(plan)
    union = united(plan, found.path, [part_of(found, b) for b in ranges(parts)])
    for seed in range(2):
        inputs = arrivals(seed)
        assert said(union, inputs) == said(plan, inputs)


@pytest.mark.parametrize(("text", "kind"), SPREAD.items())
def test_the_largest_operator_that_can_be_is_spread(text: str, kind: type) -> None:
    top = spreadable(plan_of(text)).node
    while not isinstance(top, Join | LeftJoin | Aggregate | Distinct):
        top = top.input  # type: ignore[union-attr]
    assert isinstance(top, kind)
    assert not isinstance(spreadable(plan_of(text)).node, ToStream)


def test_every_bucket_is_in_one_part() -> None:
    for parts in (1, 2, 3, 7, 32, 128):
        found = [b for low, high in ranges(parts) for b in range(low, high + 1)]
        assert found == list(range(128))


def test_a_part_knows_its_buckets() -> None:
    plan = plan_of(next(iter(SPREAD)))
    assert buckets_of(part_of(spreadable(plan), (32, 63))) == (32, 63)
    assert buckets_of(plan) is None


@pytest.mark.parametrize(
    ("text", "why"),
    {
        "SELECT COUNT(*) AS n FROM Bids [Range 9]": "an aggregate without keys has no buckets",
        "SELECT B.item FROM Bids [Range 9] B, Sold [Range 9] S WHERE B.item > S.item": "equality",
        "SELECT item, COUNT(*) AS n FROM Bids [Rows 5] GROUP BY item": "Partition By the key",
        "SELECT item FROM Bids [Range 9]": "no join, aggregate, DISTINCT or set operator",
        "SELECT RSTREAM item, COUNT(*) AS n FROM Bids [Range 9] GROUP BY item": "no join",
    }.items(),
)
def test_what_depends_on_rows_of_several_buckets_is_refused(text: str, why: str) -> None:
    with pytest.raises(CannotSpread, match=why):
        spreadable(plan_of(text))


@pytest.mark.parametrize("text", SPREAD)
def test_publishers_send_a_part_rows_of_its_buckets_only(text: str) -> None:
    found = spreadable(plan_of(text))
    part = part_of(found, (0, 31))
    for stream in found.key:
        wanted = wanted_rows(part, stream)
        assert wanted is not None
        assert all("bucket" in repr(e) for e in wanted)
