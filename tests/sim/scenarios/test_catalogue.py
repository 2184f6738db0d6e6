"""The catalogue with a rule dropped is caught by its scenario."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.catalogue.messages import Compare
from thalweg.overlay.catalogue.protocol import Catalogue
from thalweg.overlay.catalogue.table import Table
from thalweg.overlay.protocol import Persist, Send
from thalweg.sim.scenarios.catalogue import CatalogueScenario

ENOUGH_SEEDS = range(120)


class NeverCompares(Catalogue):
    """News alone: what was lost stays lost."""

    def step(self, now_us, event):
        effects = super().step(now_us, event)
        return [e for e in effects if not (isinstance(e, Send) and isinstance(e.message, Compare))]


class Forgetful(Catalogue):
    """Acknowledges what is not on its disk."""

    def _keep(self, entry):
        return [e for e in super()._keep(entry) if not isinstance(e, Persist)]


class BelievesOldWords(Catalogue):
    """After a lost disk, what others remember beats what was written since."""

    def _own_of_old(self, entry):
        return self._keep(entry)


class NeverGivesWay(Catalogue):
    def _give_way(self, name):
        return []


class StaysBuried(Catalogue):
    """Who was forgotten by mistake accepts it."""

    def _define_again(self, entry):
        return []


class NamesByArrival(Catalogue):
    """Who was heard of first has the name."""

    def names(self):
        found = {}
        for entry in self.table.standing():
            found[entry.full_name if entry.name in found else entry.name] = entry
        return found


class TombstonesGo(Table):
    """A tombstone that was there for a while is no longer looked at."""

    def merge(self, entry):
        known = self.get(entry.key)
        if known is not None and known.dropped and not entry.dropped:
            self._entries[entry.key] = entry
            return True
        return super().merge(entry)


class WithoutTombstones(Catalogue):
    def __init__(self, membership, settings=None):
        super().__init__(membership, settings)
        self.table = TombstonesGo()


@pytest.mark.parametrize(
    "mutant",
    [
        NeverCompares,
        Forgetful,
        BelievesOldWords,
        NeverGivesWay,
        StaysBuried,
        NamesByArrival,
        WithoutTombstones,
    ],
)
def test_a_dropped_rule_is_caught(mutant):
    class Mutant(CatalogueScenario):
        settle_within_us = 30_000_000

        def catalogue(self, membership):
            return mutant(membership, self.settings)

    assert is_caught(Mutant, ENOUGH_SEEDS)
