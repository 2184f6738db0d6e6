"""SwAP with a rule dropped is caught by its scenario; and the scenario meets what it is about."""

from collections import Counter

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.adapt.swap import frontiers, giving, lifecycle, protocol, taking
from thalweg.adapt.swap.channels import NEVER, Incoming
from thalweg.adapt.swap.eddy import Eddy
from thalweg.adapt.swap.sink import Sink
from thalweg.adapt.swap.state import SiteState
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.run import run
from thalweg.sim.scenarios.swap import SwapScenario

ENOUGH_SEEDS = range(60)


class Impatient(SwapScenario):
    settle_within_us = 15 * SECOND_US


def takes_gaps(self, first, entries):
    if first > self.received + 1:
        self.received = first - 1
    return NEW_ENTRIES(self, first, entries)


def takes_twice(self, first, entries):
    return () if first > self.received + 1 else entries


def believes_at_once(self, needs, heard):
    return HEAR(self, 0, heard)


def forgets(kind):
    def write(self, key, value):
        if not key.startswith(kind):
            WRITE(self, key, value)

    write.__name__ = f"forgets_{kind}"
    return write


def keeps_waiting_rows(self, key):
    """So that a restart chooses a second next site for them."""
    if not key.startswith("wait"):
        ERASE(self, key)


def meets_at_any_time(self, stream, number, row):
    from msgspec.structs import replace

    for made, parents in MADE_WITH(self, stream, number, replace(row, start=NEVER)):
        yield replace(made, start=max(made.start, row.start)), parents


def shows_what_was_before(self, row):
    return row


def sends_to_all(state, link, row):
    return state.query.plan.djg.nodes[link.target].sites


def overlooks_waiting_rows(state, node):
    parts = state.query.plan.footprints.made[node]
    return {f: min(frontiers.coming(state, node, s, p) for s, p in of) for f, of in parts.items()}


def one_frontier_for_all_footprints(state, node):
    known = LEAVING(state, node)
    return dict.fromkeys(known, min(frontiers.lowest(state, node), *known.values()))


def purges_early(state, node):
    keys = state.query.plan.footprints.coming[node]
    return max(frontiers.coming(state, node, stream, f) for stream, f in keys)


def room_whatever_the_footprint(state, node):
    count = len(state.query.plan.djg.nodes)
    if node == giving.SINK:
        return (giving.MUCH,) * count
    waiting = sum(map(len, state.eddies[node].pending.values()))
    return (max(0, state.settings.pending_rows - waiting),) * count


NEW_ENTRIES, HEAR, LEAVING = Incoming.new_entries, Incoming.hear_frontiers, frontiers.leaving
WRITE, ERASE, MADE_WITH = SiteState.write, SiteState.erase, Eddy.made_with


@pytest.mark.parametrize(
    ("where", "name", "mutated"),
    [
        (Incoming, "new_entries", takes_gaps),
        (Incoming, "new_entries", takes_twice),
        (Incoming, "hear_frontiers", believes_at_once),
        (SiteState, "write", forgets("row")),
        (SiteState, "write", forgets("in")),
        (SiteState, "write", forgets("out")),
        (SiteState, "write", forgets("wait")),
        (SiteState, "write", forgets("made")),
        (SiteState, "erase", keeps_waiting_rows),
        (Eddy, "made_with", meets_at_any_time),
        (taking, "_close_made", lambda state, eddy, number, at: None),
        (taking, "lowest", purges_early),
        (taking, "purge", lambda state: None),
        (giving, "_addresses", sends_to_all),
        (giving, "leaving", overlooks_waiting_rows),
        (giving, "leaving", one_frontier_for_all_footprints),
        (giving, "room_at", room_whatever_the_footprint),
        (protocol.giving, "send_again", lambda state: None),
        (Sink, "shown", shows_what_was_before),
        (lifecycle, "beat", lambda state: None),
        (lifecycle, "end", lambda state: None),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_dropped_rule_is_caught(monkeypatch, where, name, mutated):
    monkeypatch.setattr(where, name, mutated)
    assert is_caught(Impatient, ENOUGH_SEEDS)


def test_the_scenario_meets_what_it_is_about(monkeypatch):
    """Parallel nodes, cycles, ends that come late, full queues, restarts in the midst of rows."""
    met = Counter()
    dispatch, restore, start = giving.dispatch, SiteState.restore, SwapScenario.__init__
    scenarios = []

    def dispatched(state):
        dispatch(state)
        met["held up"] += any(e.pending for e in state.eddies.values())

    def restored(self, kept):
        restore(self, kept)
        met["restart with rows"] += any(e.came for e in self.eddies.values())
        met["restart with rows that wait"] += any(e.pending for e in self.eddies.values())
        met["restart with entries"] += any(o.entries for o in self.outs.values())

    def started(self, options, generator):
        start(self, options, generator)
        scenarios.append(self)
        plan = self.query.plan
        met["parallel by value"] += any(
            n.is_parallel and n.edges and n.split_by is None for n in plan.djg.nodes
        )
        met["parallel by place"] += any(n.split_by is not None for n in plan.djg.nodes)
        met["cycle"] += bool(plan.djg.graph.conditions)
        met["choice"] += any(x.kind == "RMO" for links in plan.links for x in links)
        met["open ends"] += self.query.has_open_ends

    monkeypatch.setattr(giving, "dispatch", dispatched)
    monkeypatch.setattr(SiteState, "restore", restored)
    monkeypatch.setattr(SwapScenario, "__init__", started)
    for seed in range(60):
        assert run(SwapScenario, seed).problem is None
    for scenario in scenarios:
        met += scenario.happened
    short = {kind: n for kind, n in met.items() if n < LEAST.get(kind, 5)}
    assert not short, met
    assert len(met) == 12, met


LEAST = {"held up": 1_000, "changes": 3_000, "ended": 300, "void": 30}
