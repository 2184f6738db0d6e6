"""The experiments of COSMOS 6 at a small size: goals are met, and a worse site misses them."""

import pytest

from thalweg.experiments.catalogue import fragments_changes, fragments_partners, fragments_selection
from thalweg.experiments.fragments.courses import STATIC


def quiet(text, fraction=None):
    pass


def goal(report, name):
    (found,) = [g for g in report.goals if name in g.name]
    return found


SMALL = {"nodes": 5, "queries": 60, "seconds": 12}


def partners_page():
    p = fragments_partners.Parameters(**SMALL, partners=(0, 4), last_s=3)
    return fragments_partners.run(p, quiet)


@pytest.mark.slow
def test_four_partners_balance_a_site_and_none_do_not(monkeypatch: pytest.MonkeyPatch):
    report = partners_page()
    assert goal(report, "STDEV of loads").met
    assert goal(report, "filtered load").met
    monkeypatch.setattr(fragments_partners, "partners", lambda max1: STATIC)
    monkeypatch.setattr(fragments_partners, "filtered", lambda alpha, before, collected: collected)
    worse = partners_page()
    assert not goal(worse, "STDEV of loads").met
    assert not goal(worse, "filtered load").met


def changes_page():
    p = fragments_changes.Parameters(
        nodes=5,
        queries=60,
        seconds=12,
        faster_from_s=3,
        faster_to_s=10,
        faster_nodes=(1,),
        other_work_nodes=(0,),
        alphas=(),
    )
    return fragments_changes.run(p, quiet)


@pytest.mark.slow
def test_a_site_that_does_not_adapt_misses_what_partners_gain(monkeypatch: pytest.MonkeyPatch):
    assert goal(changes_page(), "static over dynamic once changed").met
    monkeypatch.setattr(fragments_changes, "partners", lambda max1, **more: STATIC)
    assert not goal(changes_page(), "static over dynamic once changed").met


@pytest.mark.slow
def test_single_operators_scatter_streams_and_fragments_do_not():
    p = fragments_selection.Parameters(
        nodes=5,
        queries=60,
        filters=(3,),
        seconds=8,
        faster_from_s=2,
        faster_to_s=5,
        seconds_faster=9,
        perturbed=1,
    )
    report = fragments_selection.run(p, quiet)
    assert goal(report, "OP-based over QF-based").met
    assert {r["strategy"] for r in report.rows} >= {"static", "flow-aware", "elementary"}
