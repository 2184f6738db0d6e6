"""Succession with a rule dropped is caught by its scenario."""

import msgspec
import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.protocol import Deliver
from thalweg.overlay.succession.messages import TakeOver
from thalweg.overlay.succession.protocol import Succession
from thalweg.sim.run import run
from thalweg.sim.scenarios.succession import SuccessionScenario

ENOUGH_SEEDS = range(60)


class KeepsWhatIsRead(Succession):
    """Homes keep what comes from where readers are, and not what windows reach back to."""

    def _keep(self, now_us):
        followed = self._followed
        self._followed = {k: msgspec.structs.replace(f, reach=0) for k, f in followed.items()}
        try:
            return super()._keep(now_us)
        finally:
            self._followed = followed


class BeginsAtOnce(Succession):
    """A fragment begins before homes hold what it is made of."""

    def _all_kept(self):
        for told in self._told.values():
            told.is_kept = True
        return super()._all_kept()


class NeverTakesOver(Succession):
    def step(self, now_us, event):
        effects = super().step(now_us, event)
        return [
            e for e in effects if not (isinstance(e, Deliver) and isinstance(e.value, TakeOver))
        ]


MUTANTS = [KeepsWhatIsRead, BeginsAtOnce, NeverTakesOver]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
def test_a_dropped_rule_is_caught(mutant):
    class Mutated(SuccessionScenario):
        def protocol(self, membership):
            return mutant(membership, self.settings)

    assert is_caught(Mutated, ENOUGH_SEEDS)


def test_fragments_are_taken_over():
    scenarios = []

    class Watched(SuccessionScenario):
        def __init__(self, *given):
            super().__init__(*given)
            scenarios.append(self)

    for seed in range(10):
        assert run(Watched, seed).problem is None
    assert sum(s.steps["taken over"] for s in scenarios) > 10
