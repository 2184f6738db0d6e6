"""Join graphs become distributed join graphs (Algorithm 5.1)."""

import pytest
from hypothesis import given, settings
from tests.placement.swap.graphs import FIGURE_5_4, RUNNING, annotated, annotated_graphs

from thalweg.placement.swap.distributed import ajg_to_djg
from thalweg.placement.swap.join_graph import Edge, JoinGraph, JoinGraphError, join_graph


def names(djg, numbers):
    return [djg.nodes[n].name for n in numbers]


def test_both_ends_of_an_edge_count():
    """As printed, begun at R, S would never reach site 1."""
    djg = ajg_to_djg(RUNNING)
    assert names(djg, djg.children[1]) == ["1", "3"]


def test_figure_5_4():
    djg = ajg_to_djg(FIGURE_5_4)
    fed = {n.name: names(djg, djg.children[i]) for i, n in enumerate(djg.nodes)}
    assert fed == {"1": ["2"], "2": [], "4": ["2", "5"], "5": ["6"], "6": []}
    assert [n.name for n in djg.nodes if n.is_self_contained] == ["1", "4"]


@settings(max_examples=60)
@given(annotated_graphs(parallel=False))
def test_properties_of_the_source(graph):
    djg = ajg_to_djg(graph)
    below_self_contained = set()
    for number, node in enumerate(djg.nodes):
        assert number not in djg.ancestors[number]  # acyclic
        assert node.is_self_contained == (not djg.ancestors[number])  # 5.1
        if node.is_self_contained:
            below_self_contained |= {i for i, a in enumerate(djg.ancestors) if number in a}
    partial = {i for i, n in enumerate(djg.nodes) if not n.is_self_contained}
    assert below_self_contained == partial  # 5.2
    edges = [e for n in djg.nodes for e in n.edges]
    assert sorted(map(repr, edges)) == sorted(map(repr, graph.graph.edges))  # each at one node


def test_a_cycle_is_broken_and_its_last_equality_is_a_condition():
    graph = join_graph("RST", [Edge(0, 0, 1, 0), Edge(1, 1, 2, 1), Edge(2, 0, 0, 1)])
    assert graph.edges == (Edge(0, 0, 1, 0), Edge(1, 1, 2, 1))
    assert graph.conditions == (Edge(2, 0, 0, 1),)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: join_graph("RST", [Edge(0, 0, 1, 0)]), "cross product"),
        (lambda: join_graph("RR", [Edge(0, 0, 1, 0)]), "alias"),
        (lambda: join_graph("R", []), "two streams"),
        (lambda: join_graph("RS", [Edge(0, 0, 5, 0)]), "does not have"),
        (lambda: Edge(1, 0, 1, 0), "two streams"),
        (lambda: JoinGraph(("R", "S"), (Edge(0, 0, 1, 0), Edge(0, 1, 1, 1))), "cycle"),
        (
            lambda: annotated("RS", [("R", "S")], {"R": "1 1", "S": "2"}, {("R", "S"): "1"}),
            "different sites",
        ),
        (
            lambda: ajg_to_djg(
                annotated("RS", [("R", "S")], {"R": "1", "S": "2"}, {("R", "S"): "3 4"})
            ),
            None,
        ),
        (
            lambda: ajg_to_djg(
                annotated("RS", [("R", "S")], {"R": "3 4", "S": "3 4"}, {("R", "S"): "3 4"})
            ),
            "Give its edges to one site",
        ),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_reason(make, message):
    if message is None:
        make()
    else:
        with pytest.raises(JoinGraphError, match=message):
            make()
