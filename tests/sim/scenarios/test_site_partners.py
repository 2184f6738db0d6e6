"""Partners of a site with a rule dropped are caught by their scenario; fragments do move."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.adapt.handover import Handover
from thalweg.adapt.handover.messages import Step
from thalweg.adapt.partners.site import SitePartners
from thalweg.overlay.protocol import Deliver
from thalweg.sim.run import run
from thalweg.sim.scenarios.site_partners import SitePartnersScenario

ENOUGH_SEEDS = range(40)


class NeverRests(SitePartners):
    """What has come may go at once."""

    def _candidates(self, now_us):
        return super()._candidates(now_us + 1_000_000_000)


class NeverAsks(SitePartners):
    def _balance(self, now_us):
        return []


class NeverConsents(SitePartners):
    def _offered(self, now_us, sender, offer):
        return []


MUTANTS = [NeverRests, NeverAsks, NeverConsents]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
def test_a_dropped_rule_is_caught(mutant):
    class Mutated(SitePartnersScenario):
        def partners(self):
            return mutant(self.agreeing)

    assert is_caught(Mutated, ENOUGH_SEEDS)


class KeepsAndGives(Handover):
    """The receiver is told that it has it, and the sender goes on."""

    def _write(self, giving):
        effects = super()._write(giving)
        if giving.step is Step.GIVEN:
            return [e for e in effects if not isinstance(e, Deliver)]
        return effects


def test_two_who_decide_are_caught():
    class Mutated(SitePartnersScenario):
        def protocol(self):
            return KeepsAndGives(self.settings)

    assert is_caught(Mutated, ENOUGH_SEEDS)


def test_fragments_move_in_most_runs():
    scenarios = []

    class Watched(SitePartnersScenario):
        def __init__(self, *given):
            super().__init__(*given)
            scenarios.append(self)

    for seed in range(4):
        run(Watched, seed)
    moved = [s.steps[f"precopy: {Step.GIVEN}"] for s in scenarios]
    assert sum(m > 0 for m in moved) >= 3, moved
