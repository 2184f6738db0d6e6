"""Plans whose join order is open: links, descriptors, and that every order works."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.placement.swap.graphs import FIGURE_5_3, FIGURE_5_4, RUNNING, annotated_graphs
from tests.placement.swap.printed_setup import set_up_as_printed

from thalweg.placement.swap.footprints import footprints, streams_of
from thalweg.placement.swap.join_graph import JoinGraphError
from thalweg.placement.swap.links import Kind, set_up
from thalweg.placement.swap.text import as_text

GOLDEN = Path(__file__).parent / "golden.txt"
CASES = {
    "running example (5.1.2, figure 5.2)": RUNNING,
    "figure 5.4, as far as the text tells it": FIGURE_5_4,
    "figure 5.3: R in two parts": FIGURE_5_3,
}


def test_plans_of_the_source(regenerate):
    found = "\n\n".join(f"{n}\n----\n{as_text(set_up(g))}" for n, g in CASES.items()) + "\n"
    if regenerate:
        GOLDEN.write_text(found)
    assert GOLDEN.read_text() == found


def test_footprints_of_the_running_example_go_where_the_source_says():
    plan = set_up(RUNNING)
    left, right = plan.links[1]
    assert (left.kind, right.kind) == (Kind.RMO, Kind.RMO)
    assert left.allows(0b010)
    (to_3,) = plan.links[0]
    assert to_3.kind is Kind.RO
    assert not to_3.allows(0b000)  # (a) an R tuple
    assert to_3.allows(0b011)  # (b) RS, made of S from site 2
    assert not to_3.allows(0b111)  # (c) RST, made of ST from site 3


@settings(max_examples=60)
@given(annotated_graphs())
def test_storage_is_bounded_as_table_5_1_says(graph):
    """A bit for each node, in each footprint and in two vectors of each link."""
    plan = planned(graph)
    if plan is not None:
        count = len(plan.djg.nodes)
        links = [link for of in plan.links for link in of]
        assert len(links) <= count * (count - 1)
        assert all(link.mask < 1 << count for link in links)
        assert plan.footprints.whole == (1 << count) - 1


def planned(graph):
    try:
        return set_up(graph)
    except JoinGraphError:  # a parallel node that can't be divided
        return None


@settings(max_examples=60)
@given(annotated_graphs())
def test_no_link_is_redundant_or_void_and_none_is_missing(graph):
    plan = planned(graph)
    if plan is None:
        return
    djg = plan.djg
    used = set()
    for node in range(len(djg.nodes)):
        for footprint in plan.footprints.leaving(node):
            held = streams_of(djg, footprint)
            ways = plan.open_to(node, footprint)
            for link in ways:
                used.add((node, link.target))
                assert not footprint >> link.target & 1  # not redundant
                assert set(djg.nodes[link.target].streams) & held == {link.stream}  # not void
                assert link.kind is Kind.RMO or len(ways) == 1
            useful = {
                i
                for i, n in enumerate(djg.nodes)
                if n.edges and not footprint >> i & 1 and held & set(n.streams)
            }
            assert {link.target for link in ways} == useful
            assert bool(ways) == (footprint != plan.footprints.whole)
    assert used == {(link.source, link.target) for links in plan.links for link in links}


@settings(max_examples=60)
@given(annotated_graphs(), st.integers(0, 1 << 30))
def test_every_combination_is_derived_once_whatever_is_chosen(graph, seed):
    """One tuple of each stream, that all match: each row goes one way, drawn afresh."""
    plan = planned(graph)
    if plan is None:
        return
    djg, draw = plan.djg, random.Random(seed)
    waiting = [{} for _ in djg.nodes]  # by node: stream -> footprint of the row that is there
    arrivals = [(djg.home[s], s, 0) for s in range(len(djg.graph.streams))]
    results = 0
    while arrivals:
        node, stream, footprint = arrivals.pop(draw.randrange(len(arrivals)))
        assert stream not in waiting[node]
        waiting[node][stream] = footprint
        if len(waiting[node]) < len(djg.nodes[node].streams):
            continue
        made = 1 << node
        for part in waiting[node].values():
            assert not made & part  # rows that meet share no node, so no stream
            made |= part
        assert made in plan.footprints.made[node]
        ways = plan.open_to(node, made)
        if not ways:
            results += made == plan.footprints.whole
            continue
        link = draw.choice(ways)
        arrivals.append((link.target, link.stream, made))
    assert results == 1


@settings(max_examples=60)
@given(annotated_graphs(parallel=False))
def test_the_printed_walk_finds_every_link(graph):
    plan = set_up(graph)
    printed = set_up_as_printed(plan.djg)
    assert set(printed) >= {(x.source, x.target) for links in plan.links for x in links}


def test_the_printed_walk_also_finds_links_that_no_row_takes_and_demands_the_wrong_parent():
    draw = random.Random(1)
    void = wrong = 0
    for _ in range(2_000):
        plan = set_up(_drawn(draw))
        exact = {(x.source, x.target): x for links in plan.links for x in links}
        for way, parent in set_up_as_printed(plan.djg).items():
            void += way not in exact
            wrong += way in exact and not exact[way].allowing >> parent & 1
    assert void > 10
    assert wrong > 10


def _drawn(draw):
    from thalweg.placement.swap.join_graph import AnnotatedJoinGraph, Edge, JoinGraph

    count = draw.randint(4, 6)
    edges = tuple(Edge(draw.randrange(i), 0, i, 0) for i in range(1, count))
    graph = JoinGraph(tuple(f"R{i}" for i in range(count)), edges)

    def sites(number):
        return tuple((str(draw.randrange(6)),) for _ in range(number))

    return AnnotatedJoinGraph(graph, sites(count), sites(count - 1))


def test_a_star_of_too_many_nodes_is_refused(monkeypatch):
    from thalweg.placement.swap import footprints as module

    monkeypatch.setattr(module, "MOST_CLASSES", 5)
    with pytest.raises(JoinGraphError, match="give more edges to one site"):
        footprints(set_up_djg())


def set_up_djg():
    from thalweg.placement.swap.distributed import ajg_to_djg

    return ajg_to_djg(FIGURE_5_4)
