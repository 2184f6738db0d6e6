import pytest
from tests.placement.heuristic.test_planner import THREE_WAY
from tests.placement.problems import problem_of, two_way

from thalweg.placement.abstract import abstract_plans
from thalweg.placement.soda.macro_q import Totals, cheapest_template, given_template

A_B, B_C, AB_C, A_BC = range(4)
AB, BC, ABC = 3, 4, 5


THREE = problem_of(THREE_WAY)
PLANS = abstract_plans(THREE, ABC)


def test_the_user_gives_the_structure():
    assert given_template(THREE, PLANS, {}) == (A_B, AB_C)


def test_templates_are_glued_at_streams_that_are_made():
    assert given_template(THREE, PLANS, {AB: A_B}) == (AB_C,)
    assert given_template(THREE, PLANS, {AB: A_B, ABC: AB_C}) == ()
    assert given_template(THREE, PLANS, {BC: B_C}) == (A_B, AB_C)  # it does not bend to fit


def test_the_cheapest_template_bends():
    assert cheapest_template(THREE, PLANS, {}) == (A_B, AB_C)  # 7 + 3; the other way takes 6 + 4
    assert cheapest_template(THREE, PLANS, {BC: B_C}) == (A_BC,)
    assert cheapest_template(THREE, PLANS, {BC: B_C, ABC: A_BC}) == ()


def test_all_hosts_together_decide():
    totals = Totals(cpu=10.0, out_bps=100.0)
    assert totals.refusal(two_way(), 0, (0,)) is None
    assert (totals.cpu, totals.out_bps) == (3.0, 95.0)
    refusal = totals.refusal(two_way(), 1, (0,))
    assert (refusal.query, refusal.resource, refusal.host) == (1, "cpu", None)
    assert "needs 7, and all hosts together have 3" in refusal.detail
    assert totals.cpu == 3.0


def test_bandwidth_for_the_result_counts_as_well():
    refusal = Totals(cpu=10.0, out_bps=4.0).refusal(two_way(), 0, ())
    assert refusal.resource == "bandwidth out"
    assert pytest.approx(5) == two_way().streams.rate_bps[AB - 1]
