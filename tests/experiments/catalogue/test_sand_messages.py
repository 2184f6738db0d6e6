"""Counting the messages of SAND's protocol, in small."""

import pytest

from thalweg.experiments.catalogue.sand_messages import Parameters, bound, run
from thalweg.experiments.report import write


def test_messages_grow_with_sources_and_pairs_whatever_the_zones(tmp_path):
    parameters = Parameters(seeds=1, trees=1, peers=30, depths=(2, 3))
    report = run(parameters, lambda text, fraction=None: None)
    assert all(goal.met for goal in report.goals), [g.as_row() for g in report.goals]
    plus = [r for r in report.rows if r["algorithm"] == "edge+" and r["depth"] == 3]
    assert [r["levels of a zone"] for r in plus] == [1, 2, 3]
    assert [r["zones"] for r in plus] == [7, 3, 1]
    assert {r["pairs measured"] for r in plus} == {9 * 8 / 2}  # eight sources and the proxy
    assert plus[-1]["cost, of the centralised"] == pytest.approx(1)  # one zone sees everything
    edge = [r for r in report.rows if r["algorithm"] == "edge"]
    assert all(r["measuring"] == 0 for r in edge)
    assert all(r["with all hops"] >= r["placing"] + r["measuring"] for r in report.rows)
    write(report, tmp_path)
    assert (tmp_path / "sand-messages-edge.svg").exists()


def test_section_fives_sum():
    assert bound(fanout=2, depth=4, levels=1) == 16 + 64 + 16 + 4 + 1
    assert bound(fanout=3, depth=4, levels=2) == 81 + 2 * (81 + 1)


def test_more_sources_than_peers_are_refused():
    with pytest.raises(ValueError, match="more peers"):
        Parameters(peers=32, depths=(5,))
