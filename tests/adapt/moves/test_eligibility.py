"""What can't move says why, and which way works."""

import pytest

from thalweg.adapt.moves.eligibility import refusal
from thalweg.adapt.moves.ways import WAYS
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.expr import Col
from thalweg.plan.functions import call
from thalweg.plan.nodes import Distinct, Join, Project, Scan, SetKind, SetOp, Window
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
