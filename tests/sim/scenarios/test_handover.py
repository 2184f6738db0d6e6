"""Handover with a rule dropped is caught by its scenario."""

import msgspec
import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.adapt.handover import CannotGive, Handover
from thalweg.adapt.handover.messages import Step
from thalweg.overlay.protocol import Deliver
from thalweg.sim.run import run
from thalweg.sim.scenarios.handover import HandoverScenario

ENOUGH_SEEDS = range(60)


class DecidesBeforeItIsTaken(Handover):
    """The sender gives it away when it is frozen, and not when the receiver has it."""

    def _write(self, giving):
        if giving.step is Step.FROZEN:
            giving = msgspec.structs.replace(giving, step=Step.GIVEN)
        return super()._write(giving)


class ForgetsWhatIsOver(Handover):
    """A question that comes late begins a move again."""

    def _end(self, move):
        self._over = []
        return super()._end(move)


class GoesOnWhileItIsTaken(Handover):
    """A receiver that is silent does not get it, and is not told."""

    def _keep(self, giving, why):
        kept = msgspec.structs.replace(giving, step=Step.KEPT, why=why, is_heard=True)
        return [e for e in self._write(kept) if not isinstance(e, Deliver)]


MUTANTS = [DecidesBeforeItIsTaken, ForgetsWhatIsOver, GoesOnWhileItIsTaken]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
def test_a_dropped_rule_is_caught(mutant):
    class Mutated(HandoverScenario):
        def protocol(self):
            return mutant(self.settings)

    assert is_caught(Mutated, ENOUGH_SEEDS)


def test_fragments_move_by_both_ways():
    scenarios = []

    class Watched(HandoverScenario):
        def __init__(self, *given):
            super().__init__(*given)
            scenarios.append(self)

    for seed in range(10):
        assert run(Watched, seed).problem is None
    for way in ("precopy", "stop"):
        assert sum(s.steps[f"{way}: given"] for s in scenarios) > 10


def test_a_receiver_that_is_gone_does_not_get_it():
    from thalweg.adapt.handover import Give, Gone
    from thalweg.overlay.protocol import Call, Init

    handover = Handover()
    handover.step(0, Init("a", 1, {}))
    handover.step(1, Call(Give("m", "f", "b", 1)))
    handover.step(2, Call(Gone("b")))
    assert handover.giving() == {}  # decided, and nobody is left to be told


def test_what_can_not_be_given_stays():
    from thalweg.adapt.handover import Give
    from thalweg.overlay.protocol import Call, Init

    handover = Handover()
    handover.step(0, Init("a", 1, {}))
    handover.step(1, Call(Give("m", "f", "b", 1, "stop")))
    effects = handover.step(2, Call(CannotGive("m", "it has finished")))
    (kept,) = handover.giving().values()
    assert (kept.step, kept.why) == (Step.KEPT, "it has finished")
    assert any(isinstance(e, Deliver) for e in effects)
