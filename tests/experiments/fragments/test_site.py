"""The site of chapter 6: sizes of the source, loads by formula, no tuple lost in a move."""

import numpy as np
import pytest

from thalweg.adapt.partners.settings import Settings
from thalweg.experiments.fragments.courses import STATIC, Change, partners, play
from thalweg.experiments.fragments.site import Site
from thalweg.experiments.fragments.workload import RATE, Sizes, draw

SMALL = Sizes(nodes=4, queries=24, theta=0.0)


def test_the_source_s_numbers_of_operators_and_fragments():
    work = draw(Sizes(), 1)
    assert len(work.time_s) == 5_750
    assert work.units == 1_250
    assert len(work.delegate) == 96
    assert draw(Sizes(by_operator=True), 1).units == 5_750


def test_neighbours_are_mutual_and_a_query_is_a_tree_of_fragments():
    work = draw(Sizes(queries=50), 2)
    for unit, near in enumerate(work.neighbours):
        assert all(unit in work.neighbours[n] for n in near)
    pairs = sum(len(n) for n in work.neighbours) // 2
    assert pairs == work.units - 50  # one edge less than fragments in each query


def expected_load(work, nodes):
    """By rates and selectivities alone."""
    load = np.zeros(nodes)
    for path, length in zip(work.paths, work.length, strict=True):
        reaches = RATE
        for operator in path[:length]:
            node = work.home[work.unit[operator]]
            load[node] += reaches * work.time_s[operator]
            reaches *= work.selectivity[operator]
    return load


def test_loads_are_those_that_rates_and_selectivities_give():
    work = draw(SMALL, 3)
    site = Site(work, 4, STATIC, 3)
    seen = site.run(20)
    measured = np.mean(seen.loads, axis=0)
    assert measured == pytest.approx(expected_load(work, 4), rel=0.05)


def test_partners_even_out_what_streams_made_uneven_and_every_tuple_is_accounted_for():
    work = draw(Sizes(nodes=4, queries=60, theta=0.95), 5)
    still, moving = (
        play(SMALL, STATIC, 18, 5, work=work),
        play(SMALL, partners(3), 18, 5, work=work),  # and then nothing is on its way
    )
    assert np.mean(moving.seen.stdev()[-4:]) < 0.5 * np.mean(still.seen.stdev()[-4:])
    assert sum(moving.seen.moves) > 0
    assert (moving.site.place >= 0).all()
    assert len(moving.site.held) == 0


def test_the_same_seed_gives_the_same_course():
    runs = [play(SMALL, partners(3), 4, 7, [Change(2, (0,), 3.0)]).seen for _ in range(2)]
    assert runs[0].pr_max == runs[1].pr_max
    assert runs[0].moves == runs[1].moves


def test_other_work_lifts_a_node_s_load_to_what_was_asked_for():
    course = play(SMALL, Settings(max1=0, max2=0, homing=False), 12, 1, [Change(4, (2,), load=0.9)])
    assert np.mean([load[2] for load in course.seen.loads[6:]]) == pytest.approx(0.9, abs=0.08)
