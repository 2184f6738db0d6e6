"""Query distribution with a rule dropped is caught by its scenario."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.distribution.entries import Epoch
from thalweg.overlay.distribution.granting import Granter
from thalweg.overlay.distribution.owning import Owner
from thalweg.overlay.distribution.protocol import QueryDistribution
from thalweg.overlay.distribution.proxy_leases import Guards
from thalweg.overlay.distribution.reporting import Reporter
from thalweg.overlay.distribution.rescuing import OrphanRescue
from thalweg.overlay.protocol import Send
from thalweg.sim.run import run
from thalweg.sim.scenarios.distribution import DistributionScenario, always_fits, at

ENOUGH_SEEDS = range(60)


class GrantsAnEpochTwice(Granter):
    """Another provider is tried under the same number."""

    def next_epoch(self, name, after):
        return Epoch(0 if after is None else after.number + 1, 0, self._own, self._life)


class LeasesToAnybody(Guards):
    """A new owner need not wait for the old one's lease to run out."""

    def _lease(self, now_us, guard, epoch):
        guard.leased_until_us = 0
        return super()._lease(now_us, guard, epoch)


class NeverMissesAnOwner(Guards):
    def silent(self, now_us, for_us):
        return []


class TakesItAllForTold(Reporter):
    """A parent that has lost its memory never gets more than changes."""

    def noted(self, parent, answer):
        if self._told is not None and self._told[0] == parent:
            self._told = (parent, self.ledger.version)


class LetsTwoRunOneQuery(Reporter):
    def to_stop(self):
        return []


class LooksAfterNoOrphans(OrphanRescue):
    def look_after(self, now_us):
        return []


class LetsGoBeforeItIsTaken(Owner):
    def move(self, order):
        effects = super().move(order)
        if any(isinstance(e, Send) for e in effects):
            del self._state.holdings.owned[order.name]
            self._state.reporter.set_own(0, f"q {order.name}", None)
        return effects


class BeginsNoRounds(QueryDistribution):
    def _beat(self, now_us):
        self._round_us = now_us
        return super()._beat(now_us)


def parts_of(node):
    state = node.state
    return (node, node.owner, node.orphan_rescue, state.granter, state.guards, state.reporter)


@pytest.mark.parametrize(
    "broken",
    [
        GrantsAnEpochTwice,
        LeasesToAnybody,
        NeverMissesAnOwner,
        TakesItAllForTold,
        LetsTwoRunOneQuery,
        LooksAfterNoOrphans,
        LetsGoBeforeItIsTaken,
        BeginsNoRounds,
    ],
)
def test_a_dropped_rule_is_caught(broken):
    class Mutant(DistributionScenario):
        most_nodes = 8
        settle_within_us = 80_000_000

        def distribution(self, membership, tree, address):
            node = super().distribution(membership, tree, address)
            part = next(p for p in parts_of(node) if type(p) is broken.__base__)
            part.__class__ = broken
            return node

    assert is_caught(Mutant, ENOUGH_SEEDS)


def test_both_kinds_of_bound_are_met_by_some_seeds():
    """One that holds for every query, and one that holds up to the weight of a query."""
    met = set()

    class Watched(DistributionScenario):
        most_nodes = 6

        def unsettled(self, world):
            missing = super().unsettled(world)
            if missing is None:
                met.add(always_fits([at(h) for h in world.up()]))
            return missing

    for seed in range(6):
        run(Watched, seed)
    assert met == {True, False}
