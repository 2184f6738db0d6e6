"""Theorem 4.1: how long a row takes to a node of a greedy tree."""

from itertools import pairwise

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.placement.trees.problems import drawn_nodes, nested

from thalweg.placement.trees.cost import flows, waiting_s
from thalweg.placement.trees.greedy import Greedy
from thalweg.placement.trees.model import depths


def way(parent, node):
    found = [node]
    while parent[found[-1]] >= 0:
        found.append(int(parent[found[-1]]))
    return found


@given(st.integers(0, 10_000), st.integers(3, 40), st.sampled_from([1.0, 3.0, 5.0]))
def test_communication_and_processing_delays_are_bounded(seed, count, load):
    nodes, cargos = drawn_nodes(count, seed, load), nested(count, seed)
    (parent,) = Greedy().build(nodes, cargos)
    height = int(depths(parent, cargos[0].members).max())
    flow = flows(cargos[0], parent)
    busy = nodes.filter_s * flow.checks + nodes.send_s * flow.sends
    fanout, rate = int(flow.children.max()), float(cargos[0].own.max())
    for node in range(1, count):
        near = nodes.delay_s[0, node] + nodes.filter_s[node] + nodes.send_s[node]
        ways = way(parent, node)
        links = sum(nodes.delay_s[p, c] for c, p in pairwise(ways))
        assert links <= 2 * near * height + 1e-12
        full = rate * fanout * near
        if full >= 1:
            continue  # the bound is about loads below one
        inside = sum(
            float(waiting_s(busy[p], flow.rate[p]))
            + busy[p] / flow.rate[p] / 2
            + nodes.filter_s[p]
            + nodes.send_s[p]
            for p in ways[1:]
        )
        bound = height * ((1 + full) / (2 * (1 - full)) * fanout * near + near)
        assert inside <= bound + 1e-12


@given(st.integers(0, 10_000), st.integers(4, 30))
def test_who_serves_was_nearer_than_whom_it_serves(seed, count):
    """What the proof rests on: nodes join in the order of d(s, i) + t^p + t^c."""
    nodes, cargos = drawn_nodes(count, seed), nested(count, seed)
    (parent,) = Greedy().build(nodes, cargos)
    near = nodes.delay_s[0] + nodes.filter_s + nodes.send_s
    hung = np.flatnonzero(parent > 0)
    assume(len(hung) > 0)
    assert (near[parent[hung]] <= near[hung]).all()
