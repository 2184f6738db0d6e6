"""Tuples through a plan under alerts: what is saved, and what is lost."""

import pytest

from thalweg.experiments.catalogue._flow import Failure, Plan, flow

PLAN = Plan(rate=40, window_s=10, values=50, ranges=4, lease_s=3.0, run_s=90)
SILENT = Failure(20, 60, stream="D")
FAILED = Failure(20, 90, share=0.5)


@pytest.fixture(scope="module")
def silent():
    return {
        "without": flow(PLAN, SILENT, alerts=False),
        "printed": flow(PLAN, SILENT, alerts=True),
        "exact": flow(PLAN, SILENT, alerts=True, exact=True),
    }


def test_nothing_fails_nothing_changes():
    never = Failure(200, 300)
    without, printed = (flow(PLAN, never, alerts=on) for on in (False, True))
    assert (without.base, without.intermediate) == (printed.base, printed.intermediate)
    assert without.results == printed.results
    assert without.base == 4 * 40 * 90
    assert without.alerts == 0 < printed.alerts


def test_alerts_save_messages_while_a_stream_is_silent(silent):
    assert silent["printed"].base < silent["without"].base
    assert silent["printed"].intermediate < 0.8 * silent["without"].intermediate


def test_as_printed_they_cost_results(silent):
    assert silent["printed"].results < silent["without"].results


def test_the_exact_variant_loses_no_result_and_still_saves(silent):
    assert silent["exact"].results == silent["without"].results
    assert silent["exact"].intermediate < silent["without"].intermediate


def test_hosts_that_fail_let_their_partners_rest():
    without, printed = (flow(PLAN, FAILED, alerts=on) for on in (False, True))
    assert printed.results == without.results
    assert printed.base < without.base
    assert printed.intermediate < without.intermediate
