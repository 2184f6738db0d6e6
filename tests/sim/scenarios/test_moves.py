"""Moves with a rule dropped are caught by their scenario; all steps meet kills."""

from collections import Counter

import pytest
from tests.sim.scenarios.moves_variants import (
    Forgetful,
    Grouped,
    GroupedAbove,
    Impatient,
    LateQuestions,
)
from tests.sim.scenarios.swarm import is_caught

from thalweg.adapt.moves import protocol
from thalweg.adapt.moves.flow.split import Split
from thalweg.adapt.moves.flow.tracks import Track
from thalweg.adapt.moves.flow.union import Union
from thalweg.adapt.moves.grouping import Above
from thalweg.adapt.moves.messages.data import FULL, NEW
from thalweg.adapt.moves.processor import answering
from thalweg.adapt.moves.processor.durable import Disk
from thalweg.adapt.moves.processor.holding import Holding
from thalweg.adapt.moves.processor.processor import Processor
from thalweg.adapt.moves.state.join import RangeJoin
from thalweg.adapt.moves.ways import WAYS
from thalweg.adapt.moves.ways.shipping import Incoming
from thalweg.overlay.protocol import Persist
from thalweg.sim.run import run
from thalweg.sim.scenarios.moves import MovesScenario

ENOUGH_SEEDS = range(40)


def says_new_with_new_too(self, combination):
    return combination[0] >= self.outbox.since


def begins_with_old_rows_too(self, now_us, meta):
    meta.kind = FULL
    return BEGIN(self, now_us, meta)


def drops_unmatched_without_recomputing(self, inputs, upto, number):
    return None


def loses_a_segment(self):
    states = STATES(self)
    for segments in states.values():
        if len(segments) > 1:
            segments.pop(min(segments))
    return states


def crosses_the_cap(self):
    cap, self.meta.cap = self.meta.cap, None
    moved = ADVANCE(self)
    self.meta.cap = cap
    return moved


def keeps_no_windows(self, holding, leaf, number, segment):
    return Persist("nothing", None)


def counts_twice(self, part, track, at, found):
    track.frontier = min(track.frontier, max(found.start, self.said))
    return TAKE_RESULTS(self, part, track, at, found)


def follows_without_tracks(self, part, track, given, read_upto):
    """As if the receiver said everything from τ on."""
    followed = FOLLOW(self, part, track, given, read_upto)
    if followed and given.parallel:
        part.tracks = [t for t in part.tracks if t.kind == NEW]
    return followed


def forgets_ends(self, persisted):
    RESTORE_UNION(self, {k: v for k, v in persisted.items() if not k.startswith("ends/")})


def stamps_in_the_past(self, now_us, request):
    upto, self.upto = self.upto, max(0, self.upto - 2)
    effects = PUBLISH(self, now_us - 2 * self._instant_us, request)
    self.upto = upto
    return effects


def starts_at_its_own_frontier(self, message):
    """The successor of a lost owner begins where the union has read to, not said to."""
    read = {(lo, hi): part.frontier for lo, hi, part in self.parts}
    effects = FENCE(self, message)
    for lo, hi, part in self.parts:
        if effects and (lo, hi) in read and len(part.tracks) == 1:
            track: Track = part.tracks[0]
            if track.begin == self.said:
                track.frontier = max(track.frontier, min(read[lo, hi], self.said + 40))
    return effects


ADVANCE, STATES, BEGIN = Holding.advance, Incoming.states, Processor.begin
TAKE_RESULTS, FOLLOW, FENCE = Union._take, Union._follow, Union.fence
RESTORE_UNION, PUBLISH = Union.restore, Split.publish


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "rule", "mutated"),
    [
        (Holding, "_emits", says_new_with_new_too),
        (Processor, "begin", begins_with_old_rows_too),
        (RangeJoin, "recompute", drops_unmatched_without_recomputing),
        (Incoming, "states", loses_a_segment),
        (Holding, "advance", crosses_the_cap),
        (Disk, "segment", keeps_no_windows),
        (Union, "_take", counts_twice),
        (Union, "_follow", follows_without_tracks),
        (Union, "restore", forgets_ends),
        (Split, "publish", stamps_in_the_past),
        (Union, "fence", starts_at_its_own_frontier),
        (Union, "fence", lambda self, message: []),
        (Processor, "tidy", lambda self, now_us: []),
        (answering, "provide", lambda processor, now_us, want, said: []),
    ],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_a_dropped_rule_is_caught(monkeypatch, where, rule, mutated):
    monkeypatch.setattr(where, rule, mutated)
    assert is_caught(Impatient, ENOUGH_SEEDS)


def moves_though_made_again(self):
    m = self.meta
    settled = m.kind == FULL or (m.kind == NEW and m.acked >= m.tau + self.query.longest)
    return m.active and m.pending is None and m.given is None and settled


def answers_late_questions(processor, now_us, sender, message):
    processor.said = 0
    return ANSWER(processor, now_us, sender, message)


def forgets_what_ends_at_once(self, at):
    return LIVE(self, at + 1)


ANSWER, LIVE = answering.answer, RangeJoin.live


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "first_seed", "where", "rule", "mutated"),
    [
        (Forgetful, 0, Holding, "is_movable", property(moves_though_made_again)),
        (LateQuestions, 2, protocol, "answer", answers_late_questions),
        (Grouped, 5, Holding, "fold", lambda self: None),
        (Grouped, 5, RangeJoin, "live", forgets_what_ends_at_once),
        (GroupedAbove, 6, Above, "restore", lambda self, persisted: None),
    ],
    ids=["is_movable", "answer", "fold", "live", "restore"],
)
def test_a_dropped_rule_is_caught_where_it_matters(
    monkeypatch, scenario, first_seed, where, rule, mutated
):
    assert run(scenario, first_seed).problem is None
    monkeypatch.setattr(where, rule, mutated)
    assert is_caught(scenario, range(first_seed, first_seed + 20))


@pytest.mark.slow
def test_every_step_of_every_way_is_reached_and_moves_end_both_ways():
    steps, ended = Counter(), Counter()

    class Counting(MovesScenario):
        def delivered(self, host, protocol, value):
            if type(value).__name__ == "Stepped":
                steps[value.move.way, value.step] += 1
            super().delivered(host, protocol, value)

        def unsettled(self, world):
            problem = super().unsettled(world)
            if problem is None:
                ended.update(self.ended)
            return problem

    for seed in range(25):
        assert run(Counting, seed).problem is None
    wanted = {(w.name, step.name) for w in WAYS.values() for step in w.steps}
    assert {key for key, count in steps.items() if count >= 10} == wanted
    for name in WAYS:
        assert ended[f"{name} done"] > 10
        assert (
            sum(count for kind, count in ended.items() if kind.startswith(name))
            > ended[f"{name} done"]
        )
