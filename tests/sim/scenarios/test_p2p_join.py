"""Joins between peers with a rule dropped are caught by their scenario."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.generator import Generator, seed_of
from thalweg.overlay.p2p.answers import Answers
from thalweg.overlay.p2p.claims import Claims
from thalweg.overlay.p2p.leading import Draft
from thalweg.overlay.p2p.pending import Pending
from thalweg.overlay.p2p.sources import Sources
from thalweg.overlay.p2p.stems import Stems
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import draw
from thalweg.sim.run import run
from thalweg.sim.scenarios.p2p_join import P2PJoinScenario, standing_at, states_of, streams_at
from thalweg.sim.world import World

ENOUGH_SEEDS = range(40)
RARER = range(135, 150)  # it takes a tuple that comes while its bucket changes hands
LOSSES = (122, 73, 80)  # sources go with all their copies


def _never_purges(stems, frontier, names):
    return 0


def _moves_no_entries(sources, claim, lacking):
    return ()


def _runs_ahead(draft, committed):
    promised = [e.frontier for e in draft.entries.values()]
    return max(committed.frontier, max(promised, default=0))


def _acknowledges_at_once(owner, holding):
    return True


def _wakes_unheard(sources, source):
    return True


def _forgets_lateness(sources, now_us, source):
    """In event time, as if nothing came out of order."""
    busy = [source.log[seq].tup.ts for seq in source.busy]
    return min([*busy, source.newest + 1 if source.time else sources._next_ts(now_us, source)])


def _keeps_what_was_reported_lost(pending, source, said):
    return []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "rule", "broken", "seeds"),
    [
        (Stems, "purge", _never_purges, ENOUGH_SEEDS),
        (Answers, "_retained", _moves_no_entries, ENOUGH_SEEDS),
        (Draft, "issued", _runs_ahead, ENOUGH_SEEDS),
        (Claims, "is_complete", _acknowledges_at_once, RARER),
        (Sources, "_is_awake", _wakes_unheard, ENOUGH_SEEDS),
        (Sources, "frontier", _forgets_lateness, ENOUGH_SEEDS),
        (Pending, "leave_out", _keeps_what_was_reported_lost, LOSSES),
    ],
    ids=lambda v: getattr(v, "__name__", str(v)),
)
def test_a_dropped_rule_is_caught(where, rule, broken, seeds, monkeypatch):
    monkeypatch.setattr(where, rule, broken)
    assert is_caught(P2PJoinScenario, seeds)


def test_results_are_compared_and_there_are_some(monkeypatch):
    """A judge that sees nothing would find nothing wrong."""
    seen = []
    monkeypatch.setattr(
        P2PJoinScenario,
        "delivered",
        lambda self, host, protocol, value, _=P2PJoinScenario.delivered: (
            seen.append(value),
            _(self, host, protocol, value),
        )[1],
    )
    outcome = run(P2PJoinScenario, 1)
    assert outcome.problem is None
    changes = [c for v in seen if type(v).__name__ == "Final" for c in v.changes]
    assert len(changes) > 50


def test_a_stream_whose_register_has_no_majority_waits_and_says_for_whom():
    """Two of three are gone: who is left decides nothing, the asker hears who is missed, and all
    goes on once one of them is back."""
    seed = 1
    options = draw(seed, (), 8, 8, 8)
    scenario = P2PJoinScenario(options, Generator(seed_of(seed, "workload")))
    assert not scenario.draw.eager
    world = World(scenario.build, seed=seed, on_deliver=scenario.delivered)
    for number in range(1, 9):
        world.start(f"n{number}")
        scenario.admit(world, f"n{number}")

    def live(seconds):
        for _ in range(seconds * 2):
            scenario.act(world)
            world.run_for(SECOND_US // 2)

    live(14)
    query = scenario.queries["q0"]
    stream, asker = query.streams[0], streams_at(world.hosts[query.asker])
    (state, *_) = states_of(world, stream)
    members = [m.address for m in state.members]
    away = [a for a in members if a != query.asker][:2]
    assert asker.waits_for(stream) == ()
    for address in away:
        world.crash(address)
    live(8)  # what was on its way arrives
    stuck = standing_at(world, query).frontiers[stream]
    live(8)
    assert asker.waits_for(stream) == tuple(members)
    assert standing_at(world, query).frontiers[stream] == stuck
    world.start(away[0])
    live(20)
    assert asker.waits_for(stream) == ()
    assert standing_at(world, query).frontiers[stream] > stuck
