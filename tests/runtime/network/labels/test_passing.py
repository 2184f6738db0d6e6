"""All classes in one pass let through what the reference says of each, whatever comes between."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drawn import examples

from thalweg.engine.arrivals import Arrival
from thalweg.engine.reference.tolerance import passed
from thalweg.engine.shared.frames import dtype
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.coherency.tolerance import ChangesSince, Deviation, RelativeDeviation
from thalweg.plan.nodes import Scan, Tolerant
from thalweg.plan.types import BIGINT, DOUBLE, VARCHAR, decimal
from thalweg.runtime.network.labels.keeping import packed, unpacked
from thalweg.runtime.network.labels.passing import Due, Passing, labels

STREAM = StreamDef(
    "S",
    (
        Field("k", VARCHAR),
        Field("a", BIGINT),
        Field("x", DOUBLE),
        Field("d", decimal(2)),
        Field("t", BIGINT),
    ),
    "t",
    BIGINT,
)
SCHEMA = {f.name: dtype(f.type) for f in STREAM.fields}
PER = st.sampled_from([(), (0,), (0, 1)])
SHARES = st.sampled_from([Decimal(0), Decimal("0.1"), Decimal("0.5"), Decimal("2")])
by_value = st.builds(
    lambda t, column, per: Tolerant(Scan(STREAM), t, column, per),
    st.one_of(
        st.builds(Deviation, st.sampled_from([Decimal(n) for n in ("0", "0.3", "1", "2.5")])),
        st.builds(RelativeDeviation, SHARES),
    ),
    st.sampled_from([1, 2, 3]),
    PER,
)
by_rows = st.builds(
    lambda n, per: Tolerant(Scan(STREAM), ChangesSince(n), None, per), st.integers(0, 4), PER
)
classes = st.one_of(by_value, by_rows)
doubles = [0.0, -1.0, 0.3, 1.5, 9.0, None, float("nan"), float("inf"), float("-inf")]
rows = st.tuples(
    st.sampled_from(["x", "y", None]),
    st.sampled_from([0, 1, -1, 4, None, 1 << 62, -(1 << 62)]),
    st.sampled_from(doubles),
    st.sampled_from([None, *map(Decimal, ("0", "1", "-1.25", "3", "1e30"))]),
)


def frame(arrivals: list[Arrival]) -> pl.DataFrame:
    return pl.DataFrame([a.row for a in arrivals], schema=SCHEMA, orient="row")


def due(passing: Passing, arrivals: list[Arrival]) -> set[tuple[int, int]]:
    """Class and position of what passes."""
    found = passing.run(frame(arrivals))
    assert (np.diff(found.row) >= 0).all()
    pairs = zip(found.class_.tolist(), found.row.tolist(), strict=True)
    made = [(class_, arrivals[row].position) for class_, row in pairs]
    assert len(made) == len(set(made)), "a row passes once"
    return set(made)


def expected(node: Tolerant, arrivals: list[Arrival]) -> set[int]:
    return {a.position for _, a in passed(node, arrivals)}


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_what_passes_is_what_the_reference_says(data: st.DataObject) -> None:
    """While classes start with the past there is, end, and everything begins again."""
    draw = data.draw
    every = [Arrival(0, t, t, (*row, t)) for t, row in enumerate(draw(st.lists(rows, max_size=40)))]
    passing, known, begun, done = Passing(), dict[int, Tolerant](), dict[int, int](), 0
    found: dict[int, set[int]] = {}
    while done < len(every) or not known:
        what = draw(st.sampled_from(["rows", "rows", "start", "start", "again", "end"]))
        if what == "start" or not known:
            number = len(begun)
            node, horizon = draw(classes), draw(st.integers(0, done))
            apart = Passing()
            apart.start(STREAM, {number: node})
            found[number] = {p for _, p in due(apart, every[horizon:done])}
            passing.absorb(apart)
            known[number], begun[number] = node, horizon
        elif what == "again":
            passing = unpacked(packed(passing), STREAM, known)
        elif what == "end" and len(known) > 1:
            gone = draw(st.sampled_from(sorted(known)))
            assert found.pop(gone) == expected(known.pop(gone), every[begun[gone] : done])
            passing.end([gone])
        elif done < len(every):
            more = draw(st.integers(1, 12))
            for class_, position in due(passing, every[done : done + more]):
                found[class_].add(position)
            done = min(done + more, len(every))
        assert passing.classes == set(known)
    for number, node in known.items():
        assert found[number] == expected(node, every[begun[number] :])
        last = dict[Any, int]()
        for _, a in passed(node, every[begun[number] :]):
            key = tuple("NaN" if v != v else v for v in (a.row[k] for k in node.per))
            last[key] = max(a.position, last.get(key, -1))
        held = passing.held(number)
        there = [] if held is None else held["t"].to_list()
        assert sorted(there) == sorted(last.values())


def test_many_classes_and_rows_at_once() -> None:
    """As many as are looked at in parts, with more rows of some keys than of others."""
    rng = np.random.default_rng(5)
    nodes = {
        n: Tolerant(Scan(STREAM), Deviation(Decimal(n) / 40), 2, (0,)) for n in range(1, 2_500)
    }
    passing, walks, every = Passing(), dict.fromkeys(range(900), 10.0), list[Arrival]()
    passing.start(STREAM, nodes)
    found: dict[int, set[int]] = {n: set() for n in nodes}
    for _ in range(3):
        first = len(every)
        for t in range(first, first + 2_000):
            k = int(900 * rng.random() ** 3)
            walks[k] += float(rng.normal(0, 6))
            every.append(Arrival(0, t, t, (str(k), None, walks[k], None, t)))
        for class_, position in due(passing, every[first:]):
            found[class_].add(position)
    for number in (1, 2, 40, 700, 2_499):
        assert found[number] == expected(nodes[number], every)


def test_a_label_names_the_classes_that_have_a_name() -> None:
    due = Due(np.array([0, 0, 0, 2, 3]), np.array([1, 5, 7, 5, 9]))
    at, texts = labels(due, {1: "1", 5: "5,12", 7: "7"})
    assert (at.tolist(), texts.to_list()) == ([0, 2], ["1,5,12,7", "5,12"])
    at, texts = labels(Due(np.array([], int), np.array([], int)), {1: "1"})
    assert (at.tolist(), texts.to_list()) == ([], [])
