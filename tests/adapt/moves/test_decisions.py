"""Decisions are fenced: by the manager's present choice, and by the making that the union knows."""

import msgspec
import pytest

from thalweg.adapt.moves.directory import Directory, Times
from thalweg.adapt.moves.flow.union import Union
from thalweg.adapt.moves.messages.commands import (
    Aborted,
    ComputePartitionsToMove,
    PartitionsToMove,
    Reactivated,
    ReactivatePartitions,
    Refused,
)
from thalweg.adapt.moves.messages.data import (
    FULL,
    GENERATION,
    OLD,
    Given,
    ReadResults,
    Release,
    Results,
    Want,
)
from thalweg.adapt.moves.messages.requests import Assign
from thalweg.adapt.moves.processor.answering import answer as answered
from thalweg.adapt.moves.processor.answering import release
from thalweg.adapt.moves.processor.meta import Meta
from thalweg.adapt.moves.processor.processor import Processor
from thalweg.adapt.moves.query import Query
from thalweg.adapt.moves.state.shapes import mjoin
from thalweg.adapt.moves.ways import WAYS
from thalweg.adapt.moves.ways.ptlb import DuplicatePartitions, Duplicating
from thalweg.adapt.moves.ways.receiving import freeze
from thalweg.overlay.protocol import Persist, Send
from thalweg.plan.windows import TimeWindow

QUERY = Query(("A", "B"), (TimeWindow(5), TimeWindow(5)), 8)


@pytest.fixture
def sender():
    processor = Processor(QUERY, mjoin(2), Directory(("s", "s"), "u", "m"), Times(), "1")
    processor.address = "p1"
    processor.begin(0, Meta(0, 8, epoch=3, registered=True))
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


def test_a_range_that_is_made_again_for_a_late_question_is_not_given_away_again(sender):
    chosen(sender, "ptlb")
    told(sender, "ptlb", DuplicatePartitions("x", 2, 5, "p2", 4, -1))
    release(sender, Release(((2, 5, 3),)))
    late = ReadResults(0, (Want(0, 8, 3, FULL, 0, 0, 0, sender.holdings[0].meta.made),))
    answered(sender, 2, "u", late)
    again = ComputePartitionsToMove("y", "ptlb", "p3", 0.5, 2, 5)
    assert answers(told(sender, "ptlb", again)) == []  # not before it is registered
    by_share = ComputePartitionsToMove("z", "ptlb", "p3", 1.0)
    (answer,) = answers(told(sender, "ptlb", by_share))
    assert isinstance(answer, PartitionsToMove)
    assert not (answer.lo < 5 and answer.hi > 2)


def test_named_buckets_that_are_elsewhere_or_in_pieces_say_so(sender):
    chosen(sender, "ptlb")
    (answer,) = answers(told(sender, "ptlb", ComputePartitionsToMove("y", "ptlb", "p3", 0.5, 1, 4)))
    assert answer == Refused(
        "y", "buckets 1 to 3 are here in pieces, 0 to 1, 2 to 4: move them one by one"
    )
    (answer,) = answers(told(sender, "ptlb", ComputePartitionsToMove("y", "ptlb", "p3", 0.5, 2, 5)))
    assert answer == Refused("y", "buckets 2 to 4 are on the move")
    (answer,) = answers(told(sender, "ptlb", ComputePartitionsToMove("y", "ptlb", "p3", 0.5, 2, 9)))
    assert answer == Refused("y", "buckets 2 to 8 are not all here")


def conversation(union, processor):
    """The union asks once, and hears the answer."""
    for question in answers(union.wants()):
        for answer in answers(answered(processor, 1, "u", question)):
            if isinstance(answer, Results):
                union.receive("p1", answer)


def processor_in_life(seed):
    processor = Processor(QUERY, mjoin(2), Directory(("s", "s"), "u", "m"), Times(), "1")
    processor.address = "p1"
    processor.restore(seed, {})
    return processor


def test_a_range_moves_once_the_union_has_registered_its_making():
    union, processor = Union(QUERY), processor_in_life(1)
    union.assign(Assign(((0, 8, "p1"),)))
    conversation(union, processor)
    assert not processor.holdings[0].is_movable
    conversation(union, processor)
    assert processor.holdings[0].is_movable


def test_what_an_owner_has_lost_goes_on_there_in_the_next_generation():
    union = Union(QUERY)
    union.assign(Assign(((0, 8, "p1"),)))
    conversation(union, processor_in_life(1))
    again = processor_in_life(2)
    conversation(union, again)
    assert not again.holdings[0].is_movable
    ((_, _, part),) = union.parts
    assert (part.epoch, part.tracks[0].owner) == (GENERATION, "p1")
    conversation(union, again)
    conversation(union, again)
    assert {h.meta.epoch: h.is_movable for h in again.holdings} == {0: False, GENERATION: True}


def test_a_question_that_comes_late_costs_nothing():
    union, processor = Union(QUERY), processor_in_life(1)
    union.assign(Assign(((0, 8, "p1"),)))
    (late,) = answers(union.wants())
    for _ in range(2):
        conversation(union, processor)
    before = list(processor.holdings)
    now = tuple(msgspec.structs.replace(want, start=9) for want in late.wants)
    answered(processor, 2, "u", ReadResults(9, now))
    assert answered(processor, 3, "u", late) == []
    assert processor.holdings == before
