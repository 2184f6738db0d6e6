"""The simulator's benchmark: what it measures, not how fast it is."""

import os

import pytest

from bench.sim import HUGE_PAGES, Parameters, run

TINY = Parameters(bare_events=1_000, echo_seconds=1, nodes=(4,), settle_seconds=0, seconds=1)


def test_each_size_is_measured_in_both_weathers_and_held_against_a_goal():
    report = run(TINY, lambda text, fraction=None: None)
    rings = [r for r in report.rows if r["what"].startswith("membership")]
    assert [r["what"].split(", ")[1] for r in rings] == ["fine weather", "rough weather"]
    assert all(r["events"] > 0 and r["cpu s"] > 0 and r["wall s"] > 0 for r in report.rows)
    measured = {g.name: g.measured for g in report.goals}
    for ring in rings:
        assert measured[f"{ring['what']}, 4 nodes"] == ring["events/s"]
    assert HUGE_PAGES.keys().isdisjoint(os.environ)


@pytest.mark.parametrize("wrong", [{"nodes": (1,)}, {"seconds": 0}, {"settle_seconds": -1}])
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValueError, match=r"two nodes or more|can't be negative"):
        Parameters(**wrong)
