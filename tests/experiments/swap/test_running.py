"""Simulated sites with speeds: every method gives all results, and time is what the costs say."""

import pytest

from thalweg.experiments.swap.bound import bound_s
from thalweg.experiments.swap.methods import METHODS, R_FIRST, SWAP, T_FIRST
from thalweg.experiments.swap.oracle import best_share
from thalweg.experiments.swap.running import Play
from thalweg.experiments.swap.setting import Conditions, Setting, values

SLOW = (Conditions(slow_site="site3"),)


def played(setting, method):
    return Play(setting, METHODS[method], None).run()


def results(setting):
    """By brute force."""
    r, s, t = values(setting)
    return sum(r.count(v) * t.count(v) for v in s)


def test_selectivities_are_as_asked():
    setting = Setting(((0.2, 2.0), (2.0, 0.2)), scale=0.02)
    r, s, t = values(setting)
    half = len(s) // 2
    for rows, of_r, of_t in ((s[:half], 0.2, 2.0), (s[half:], 2.0, 0.2)):
        assert sum(r.count(v) for v in rows) / half == pytest.approx(of_r, rel=0.25)
        assert sum(t.count(v) for v in rows) / half == pytest.approx(of_t, rel=0.25)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_all_results(method):
    setting = Setting(((2.0, 1.0),), scale=0.01)
    outcome = played(setting, method)
    assert outcome.results == results(setting)
    assert outcome.first_1 + outcome.first_3 == setting.rows[1]
    assert outcome.response_s >= 0.99 * max(outcome.busy_s.values())


def test_the_bound_is_below_all_and_a_slow_link_is_divided_as_it_should_be():
    setting = Setting(((0.5, 0.5),), SLOW, scale=0.02)
    assert bound_s(setting) == pytest.approx(setting.rows[1] * 0.01 / 3, rel=0.01)  # σ / (1 + σ)
    assert best_share(setting, 0, 0) == pytest.approx(2 / 3, abs=0.01)
    for method in METHODS:
        assert played(setting, method).response_s > 0.9 * bound_s(setting)


def test_a_bound_takes_changes_into_account():
    swapped = (*SLOW, Conditions(250.0, slow_site="site1"))
    assert bound_s(Setting(((0.5, 0.5),), swapped)) < bound_s(Setting(((0.5, 0.5),), SLOW))


def test_virtual_tuples_cost_what_the_formula_says():
    """At most s · t / threshold messages, each with one number."""
    for method in (SWAP, R_FIRST):
        play = Play(Setting(((0.5, 1.5),), scale=0.02), METHODS[method], None)
        outcome = play.run()
        made = sum(i.returned for a in ("site1", "site3") for i in play._state(a).ins.values())
        told = play.world.sent["swap", "Returned"]
        assert 0 < told <= made / play.settings.threshold_rows
        assert made <= 2.5 * (outcome.first_1 + outcome.first_3)


def test_each_method_is_played_by_its_own_policy():
    """Static plans send all of S one way; nobody else does."""
    setting = Setting(((2.0, 1.0),), scale=0.01)
    shares = {m: played(setting, m).share_1 for m in (SWAP, R_FIRST, T_FIRST)}
    assert (shares[R_FIRST], shares[T_FIRST]) == (1.0, 0.0)
    assert 0.0 < shares[SWAP] < 1.0
