"""Partners with a rule dropped are caught by their scenario; faults meet every step of a move."""

import os

import msgspec
import pytest
from tests.sim.scenarios.partners_meeting import cells, met
from tests.sim.scenarios.swarm import is_caught

from thalweg.adapt.partners.holdings import Holdings
from thalweg.adapt.partners.homes import Homes
from thalweg.adapt.partners.protocol import Partners
from thalweg.adapt.partners.settings import Settings
from thalweg.overlay.protocol import Persist, Send
from thalweg.sim.scenarios.partners import PartnersScenario

ENOUGH_SEEDS = range(60)


class DecidesWithoutLease(Holdings):
    def decides(self, name, now_us):
        return name in self.held and self.held[name].stopping is None


class DecidesUntilShipped(Holdings):
    """Goes on while the fragment travels."""

    def decides(self, name, now_us):
        kept = self.leaving.get(name)
        return super().decides(name, now_us) or (kept is not None and kept.shipping)

    def extracted(self, request):
        held = self.held.get(request.fragment)
        effects = super().extracted(request)
        if effects and held is not None:  # the broken check above is asked for what is held
            self.held[request.fragment] = held
            held.stopping = None
        return effects


class ShipsWhatItOnceGot(Holdings):
    """The state of when the fragment came, with the instant of now."""

    def extracted(self, request):
        held = self.held.get(request.fragment)
        old = held.state if held is not None else b""
        return super().extracted(msgspec.structs.replace(request, state=old or b"0"))


class TakesTooEarly(Homes):
    """As if a lease were over when an owner is silent for a round."""

    def overdue(self, now_us, has):
        early_us = self.settings.expiry_us - self.settings.round_us
        return super().overdue(now_us + early_us, has)


class NeverTakesBack(Homes):
    def overdue(self, now_us, has):
        known = {n: r for n, r in self.records.items() if r.owner not in ("", self.own)}
        for name in known:
            self.until_us[name] = now_us + 10**9
        return super().overdue(now_us, has)


class SkipsAhead(Homes):
    """Starts at the present instead of where the last one stopped."""

    def _take(self, now_us, record, upto, taken):
        return super()._take(now_us, record, upto + 1_000_000, taken)


class ForgetfulHome(Homes):
    def _write(self, record):
        return [e for e in super()._write(record) if not isinstance(e, Persist)]


class AsksTheBusiestForEver(Partners):
    """One that has nothing to give is asked again and again."""

    def _offered(self, now_us, sender, offer):
        effects = super()._offered(now_us, sender, offer)
        self._dry.clear()
        return effects


class NeverAsks(Partners):
    def _balance(self, now_us):
        return [
            e
            for e in super()._balance(now_us)
            if not (isinstance(e, Send) and type(e.message).__name__ == "Ask")
        ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        DecidesWithoutLease,
        DecidesUntilShipped,
        ShipsWhatItOnceGot,
        TakesTooEarly,
        NeverTakesBack,
        SkipsAhead,
        ForgetfulHome,
        AsksTheBusiestForEver,
        NeverAsks,
    ],
)
def test_a_dropped_rule_is_caught(broken):
    class Mutant(PartnersScenario):
        settle_within_us = 60_000_000

        def protocol(self, membership):
            if issubclass(broken, Partners):
                return broken(membership, self.settings)
            made = Partners(membership, self.settings)
            if issubclass(broken, Homes):
                made.homes = broken(self.settings)
            else:
                made.holdings = broken(self.settings)
            return made

    assert is_caught(Mutant, ENOUGH_SEEDS)


def test_fragments_that_never_rest_are_caught_moving_twice():
    class Restless(PartnersScenario):
        def __init__(self, options, generator):
            super().__init__(options, generator)
            self.settings = Settings(rest_rounds=0)

    assert is_caught(Restless, ENOUGH_SEEDS)


def test_faults_meet_the_steps_of_a_move():
    """THALWEG_PARTNERS_SEEDS=1000 shows that each fault meets each step 30 times at least."""
    seeds = int(os.environ.get("THALWEG_PARTNERS_SEEDS", "12"))
    counts, problems = met(range(seeds))
    assert not problems
    least = 30 if seeds >= 1000 else 0
    rare = {cell: counts[cell] for cell in cells() if counts[cell] < least}
    assert not rare
    messages = {message for (_, message), n in counts.items() if n}
    assert {"Ask", "Offer", "Consent", "Transfer", "Transferred", "Ship", "Shipped"} <= messages
