"""Decisions are fenced: the manager's word about another choice decides nothing."""

import pytest

from thalweg.adapt.moves.directory import Directory, Times
from thalweg.adapt.moves.holding import Meta
from thalweg.adapt.moves.messages import (
    OLD,
    Aborted,
    ComputePartitionsToMove,
    Given,
    PartitionsToMove,
    Reactivated,
    ReactivatePartitions,
)
from thalweg.adapt.moves.processor import Processor
from thalweg.adapt.moves.ptlb import DuplicatePartitions, Duplicating
from thalweg.adapt.moves.query import Query
from thalweg.adapt.moves.receiving import freeze
from thalweg.adapt.moves.shapes import mjoin
from thalweg.adapt.moves.ways import WAYS
from thalweg.overlay.protocol import Persist, Send
from thalweg.plan.windows import TimeWindow

QUERY = Query(("A", "B"), (TimeWindow(5), TimeWindow(5)), 8)


@pytest.fixture
def sender():
    processor = Processor(QUERY, mjoin(2), Directory(("s", "s"), "u", "m"), Times(), "1")
    processor.address = "p1"
    processor.begin(0, Meta(0, 8, epoch=3))
    return processor


def told(processor, way, message):
    return WAYS[way].processor(processor, 1, "m", message)


def answers(effects):
    return [e.message for e in effects if isinstance(e, Send)]


def chosen(processor, way):
    asked = ComputePartitionsToMove("x", way, "p2", 0.5, 2, 5)
    assert answers(told(processor, way, asked)) == [PartitionsToMove("x", 2, 5, 3)]
    return processor.moving("x")


def test_ptlb_is_decided_once_and_durable_before_it_is_told(sender):
    holding = chosen(sender, "ptlb")
    effects = told(sender, "ptlb", DuplicatePartitions("x", 2, 5, "p2", 4, -1))
    assert answers(effects) == [Duplicating("x", holding.frontier if holding.frontier > 0 else 0)]
    assert isinstance(effects[0], Persist)
    assert holding.meta.kind == OLD
    again = told(sender, "ptlb", DuplicatePartitions("x", 2, 5, "p2", 4, -1))
    assert answers(again) == answers(effects)


@pytest.mark.parametrize("asked", [(0, 5, 4), (2, 5, 1), (2, 5, 5)])
def test_a_stale_word_about_another_range_or_epoch_ends_the_move(sender, asked):
    lo, hi, epoch = asked
    holding = chosen(sender, "ptlb")
    stale = DuplicatePartitions("x", lo, hi, "p2", epoch, -1)
    assert answers(told(sender, "ptlb", stale)) == [Aborted("x")]
    assert holding.meta.given is None
    assert holding.meta.pending is None


@pytest.mark.parametrize(("tau", "ok"), [(7, True), (6, False)])
def test_state_is_given_away_at_the_instant_at_which_it_was_frozen(sender, tau, ok):
    holding = chosen(sender, "mslb")
    freeze(sender, holding, 7)
    word = ReactivatePartitions("x", 2, 5, "p2", tau, 4)
    assert answers(told(sender, "mslb", word)) == [Reactivated("x") if ok else Aborted("x")]
    assert holding.meta.given == (Given(7, "p2", 4) if ok else None)
    assert holding.meta.cap is None


def test_what_a_split_says_about_a_later_epoch_is_taken_up(sender):
    (holding,) = sender.holdings
    sender._superseded(holding, Given(40, "p2", 4, parallel=True))
    assert (holding.meta.kind, holding.meta.tau) == (OLD, 40)
    assert sender.holdings == [holding]
