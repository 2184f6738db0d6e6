"""D-CAPE's cluster: joins are exact whatever is moved, and its goals can be missed."""

import pytest

from thalweg.adapt.balancing.policy import Balancer
from thalweg.adapt.moves.query import INTERVALS, JOINED
from thalweg.experiments.catalogue import dcape_adaptation
from thalweg.experiments.dcape.arrivals import Arrivals
from thalweg.experiments.dcape.cluster import Cluster, Setting
from thalweg.experiments.dcape.purging import old_gone_after_s

ARRIVALS = Arrivals((40.0,) * 3, (40.0, 4.0, 4.0), 10)


def ran(**changes):
    setting = {"arrivals": ARRIVALS, "window_s": 6.0, "seconds": 30, "keys": 60, "capacity": 1e9}
    return Cluster(Setting(**{**setting, **changes}), 1).run()


def test_with_time_enough_every_setting_says_the_same_results():
    plain = ran()
    assert plain.results[-1] > 1_000
    for way in ("ptlb", "mslb"):
        for local in (False, True):
            moved = ran(way=way, local=local)
            assert moved.results[-1] == plain.results[-1]
            assert moved.moves
            assert bool(moved.reshaped) == local


def test_an_overloaded_machine_says_less_and_balancing_helps():
    few = ran(capacity=120.0)
    assert few.results[-1] < 0.8 * ran().results[-1]
    assert ran(capacity=120.0, way="mslb").results[-1] > 1.1 * few.results[-1]


def test_old_parts_last_a_window_by_intervals_and_two_by_stamps():
    assert old_gone_after_s(10.0, INTERVALS) == pytest.approx(10.0, rel=0.1)
    assert old_gone_after_s(10.0, JOINED) == pytest.approx(20.0, rel=0.15)


SMALL = {"seconds": 60, "rate": 50.0, "window_s": 8.0, "keys": 100, "capacity": 250.0, "seeds": 1}


def test_without_a_balancer_the_goal_of_both_is_missed(monkeypatch):
    def both() -> bool:
        report = dcape_adaptation.run(dcape_adaptation.Parameters(**SMALL), lambda *_: None)
        return next(g for g in report.goals if "balanced from the start" in g.name).met

    assert both()
    monkeypatch.setattr(Balancer, "decide", lambda self, now_us, loads: [])
    assert not both()
