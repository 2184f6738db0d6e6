"""What can't move says why, and which way works."""

import pytest

from thalweg.adapt.moves.eligibility import refusal
from thalweg.adapt.moves.partitioning import misplaced
from thalweg.adapt.moves.ways import WAYS
from thalweg.plan.aggregates import AggCall
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.expr import Col, conjunction
from thalweg.plan.functions import call
from thalweg.plan.nodes import (
    Aggregate,
    Distinct,
    Join,
    LeftJoin,
    Mark,
    Project,
    Scan,
    SetKind,
    SetOp,
    StreamKind,
    ToStream,
    Window,
)
from thalweg.plan.types import BIGINT
from thalweg.plan.windows import RowsWindow, TimeWindow


def leaf(window, name="A"):
    return Window(Scan(StreamDef(name, (Field("k", BIGINT),), "ts", BIGINT)), window)


def join(left, right):
    return Join((left, right), call("=", Col(0, BIGINT), Col(1, BIGINT)))


RANGE = TimeWindow(5)


@pytest.mark.parametrize("way", WAYS)
def test_joins_of_ranges_move_by_every_way(way):
    plan = Project(join(leaf(RANGE), leaf(TimeWindow(0), "B")), (Col(0, BIGINT),), ("k",))
    assert refusal(way, plan) is None
    assert refusal(way, SetOp(SetKind.UNION, True, plan, plan)) is None


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (leaf(TimeWindow(None)), "have no instant"),
        (leaf(RowsWindow(3, 1, (0,))), "have no instant"),
        (Distinct(leaf(RANGE)), "above the union"),
        (SetOp(SetKind.UNION, False, leaf(RANGE), leaf(RANGE)), "above the union"),
    ],
)
def test_ptlb_refuses_what_has_no_end_or_does_not_add_up(plan, reason):
    assert reason in refusal("ptlb", plan)
    assert refusal("mslb", plan) is None


def test_what_has_no_key_has_no_buckets():
    plan = join(leaf(RANGE), leaf(RowsWindow(3), "B"))
    assert "move it whole" in refusal("precopy", plan)


KEYS = {"A": 0, "B": 0}


def wide(name, window=RANGE):
    fields = (Field("k", BIGINT), Field("v", BIGINT))
    return Window(Scan(StreamDef(name, fields, "ts", BIGINT)), window)


def column(index):
    return Col(index, BIGINT)


def joined(*equal):
    parts = tuple(call("=", column(a), column(b)) for a, b in equal)
    return Join((wide("A"), wide("B")), conjunction(parts))


def values(name):
    return Project(wide(name), (column(1),), ("v",))


BY_KEY = joined((0, 2))


def count(plan, *keys):
    names = tuple(f"c{i}" for i in range(len(keys) + 1))
    return Aggregate(plan, tuple(map(column, keys)), (AggCall("count"),), names)


@pytest.mark.parametrize(
    "plan",
    [
        BY_KEY,
        joined((0, 1), (1, 2)),
        count(BY_KEY, 1, 2),
        Distinct(Project(BY_KEY, (column(2),), ("k",))),
        ToStream(StreamKind.ISTREAM, BY_KEY),
        LeftJoin(wide("A"), wide("B"), call("=", column(0), column(2))),
        wide("A", RowsWindow(3, 1, (0,))),
        SetOp(SetKind.EXCEPT, False, wide("A"), wide("B")),
        SetOp(SetKind.UNION, True, values("A"), values("B")),
    ],
)
def test_what_has_the_partition_key_runs_bucket_by_bucket(plan):
    assert misplaced(plan, KEYS) is None


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (joined((1, 3)), "without an equality of the partition keys"),
        (joined(), "without an equality of the partition keys"),
        (count(BY_KEY, 1), "Aggregate without the partition key among its keys"),
        (count(BY_KEY), "over partials"),
        (Distinct(Project(BY_KEY, (column(1),), ("v",))), "Distinct without the partition key"),
        (ToStream(StreamKind.DSTREAM, Project(BY_KEY, (column(3),), ("v",))), "DSTREAM without"),
        (count(LeftJoin(wide("A"), wide("B"), call("=", column(0), column(2))), 2), "Aggregate"),
        (wide("A", RowsWindow(3)), "Partition By the key"),
        (SetOp(SetKind.INTERSECT, False, values("A"), values("B")), "INTERSECT"),
        (wide("C"), "C has no partition key"),
        (Mark(wide("A"), wide("B")), "Mark depends on rows of all buckets"),
    ],
)
def test_what_crosses_buckets_stands_above_the_union_or_moves_whole(plan, reason):
    assert reason in misplaced(plan, KEYS)
