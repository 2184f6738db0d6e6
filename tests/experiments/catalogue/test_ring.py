"""The hour on a ready-made ring: what dissemination and gossip promise, on a small one."""

import pytest

from thalweg.experiments.catalogue._ring import Hour, live_through, ring_world
from thalweg.overlay.gossip import GossipTimes
from thalweg.sim.scenarios.chord import chord_at
from thalweg.sim.world import World

SECOND = 1_000_000
TIMES = GossipTimes(floor_us=5 * SECOND, ceiling_us=60 * SECOND)


def an_hour(**changes):
    settings = {
        "nodes": 40,
        "queries_per_hour": 60.0,
        "departs_per_5min": 0.0,
        "stabilise_s": 20.0,
        "gossip": TIMES,
        "seed": 1,
        "hours": 0.2,
        "quiet_s": 120.0,
    }
    return Hour(**(settings | changes))


def test_the_ring_is_what_chord_itself_would_keep():
    """Left alone, nothing changes."""
    world: World = ring_world(an_hour(), lambda *_: None)
    before = [
        (h.address, chord_at(h).table.successors, chord_at(h).parts(None)) for h in world.up()
    ]
    world.run_for(120 * SECOND)
    after = [(h.address, chord_at(h).table.successors, chord_at(h).parts(None)) for h in world.up()]
    assert before == after


def test_without_failures_trees_reach_all_and_no_message_is_wasted():
    seen = live_through(an_hour())
    assert seen.queries == 12
    assert seen.spread == 12 * 39
    assert seen.redundant == 0
    assert seen.by_tree == seen.coverage == seen.later == 1.0
    assert seen.repair_s == []
    assert seen.deepest <= 9


@pytest.mark.parametrize("seed", [1, 2])
def test_with_failures_gossip_repairs_what_trees_leave_out(seed):
    seen = live_through(an_hour(departs_per_5min=5.0, seed=seed))
    assert seen.departed == 12
    assert seen.by_tree < 1.0
    assert seen.later == 1.0
    assert seen.incomplete == 0
    assert seen.repair_s


def test_a_fixed_period_costs_more_than_the_adaptive_one():
    adaptive = live_through(an_hour(departs_per_5min=2.0))
    often = live_through(an_hour(departs_per_5min=2.0, gossip=GossipTimes(fixed_us=15 * SECOND)))
    assert often.gossip > 2 * adaptive.gossip


def test_algorithm_10_as_printed_answers_every_round_and_repairs_one_side_only():
    stormy = {"departs_per_5min": 8.0, "queries_per_hour": 120.0, "quiet_s": 600.0}
    printed = live_through(an_hour(as_in_source="printed", **stormy))
    meant = live_through(an_hour(as_in_source="meant", **stormy))
    ours = live_through(an_hour(**stormy))
    assert ours.later == 1.0
    assert printed.by_tree < 1.0  # there is something to repair
    assert printed.pushes > meant.pushes
    assert printed.gossip > ours.gossip
    assert 0 < printed.period_s < 120
