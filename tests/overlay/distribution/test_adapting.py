"""Which child each query goes to: where it pays, and as far as there is room."""

import numpy as np
import pytest
from tests.overlay.distribution.making import running, subtree

from thalweg.overlay.distribution.adapting import Change, Decision, Terms, accepted, adapt, cut
from thalweg.overlay.distribution.entries import Rate
from thalweg.overlay.distribution.picture import Picture
from thalweg.placement.arrays import floats

APART = floats(np.array([[0.0, 20.0], [20.0, 0.0]]))
RATES = {s: Rate(s, "elsewhere", 1, 10.0) for s in (0, 1)}


def adapted(children, allowed, *, resting=(), change=None, cost=0.0, rates=RATES):
    picture = Picture(children, APART, rates)
    found = adapt(picture, Terms(allowed, cost), resting, 1, change or Change())
    return [(d.running.query.name, d.at, d.to) for d in found]


def alike(name, substream, count, **about):
    runs = (running(f"{name}{i}", name, substreams=(substream,), **about) for i in range(count))
    return tuple(runs)


def one_astray():
    stray = running("stray", "a", substreams=(1,))
    return [
        subtree("a", {"a": 1}, *alike("a", 0, 3), stray),
        subtree("b", {"b": 1}, *alike("b", 1, 3)),
    ]


def test_alike_queries_come_together_where_there_is_room():
    assert adapted(one_astray(), 6.0) == [("stray", 0, 1)]


def test_what_rests_stays():
    assert adapted(one_astray(), 6.0, resting={"stray"}) == []


def test_a_move_must_save_a_share_of_what_a_query_costs_in_all():
    saved = 3 * 10 * 20  # the edges to those at the other child
    assert adapted(one_astray(), 6.0, cost=9.0 * saved) == [("stray", 0, 1)]
    assert adapted(one_astray(), 6.0, cost=20.0 * saved) == []


def test_too_much_at_one_child_flows_to_the_other():
    a = subtree("a", {"a": 1}, *(running(f"q{i}", "a") for i in range(6)))
    found = adapted([a, subtree("b", {"b": 1})], 4.0, rates={})
    assert [to for _, _, to in found] == [1, 1]


def test_what_comes_goes_to_its_like_and_what_leaves_makes_room():
    children = [
        subtree("a", {"a": 1}, *alike("a", 0, 4)),
        subtree("b", {"b": 1}, *alike("b", 1, 4)),
    ]
    new = running("new", "far", substreams=(1,))
    assert adapted(children, 5.0, change=Change((new,))) == [("new", None, 1)]
    full = Change((new,), ())
    assert adapted(children, 4.4, change=full) != [("new", None, 1)]
    assert adapted(children, 4.4, change=Change((new,), ("b0",))) == [("new", None, 1)]


def test_what_comes_is_not_placed_again_where_it_is_already():
    a = subtree("a", {"a": 1}, *alike("a", 0, 2))
    again = Change((running("a0", "a", substreams=(0,)),))
    assert adapted([a, subtree("b", {"b": 1})], 4.0, change=again) == []


def test_one_child_or_no_query_leaves_little_to_decide():
    alone = subtree("a", {"a": 1}, running("q", "a"))
    assert adapted([alone], 1.0) == []
    assert adapted([alone], 1.0, change=Change((running("p", "b"),))) == [("p", None, 0)]
    assert adapted([subtree("a", {"a": 1}), subtree("b", {})], 1.0) == []


def mixed(children="ab", count=60):
    """Two kinds of queries, evenly at both children: as good as chance."""
    return [
        subtree(
            name,
            {name: 1},
            *(running(f"{name}{i}", name, substreams=(i % 2,)) for i in range(count)),
        )
        for name in children
    ]


def kinds_after(children, found):
    after = {name: to for name, _, to in found}
    wants = [[0, 0], [0, 0]]  # by child and substream
    for number, child in enumerate(children):
        for r in child.running.values():
            wants[after.get(r.query.name, number)][r.query.substreams[0]] += 1
    return sorted(wants)


@pytest.mark.parametrize("most", [20, 300])
def test_a_mixture_is_taken_apart_coarsened_or_not(monkeypatch, most):
    monkeypatch.setattr("thalweg.overlay.distribution.query_graph.MOST_VERTICES", most)
    children = mixed()
    found = adapted(children, 75.0)
    mostly_other, mostly_one = kinds_after(children, found)  # vertices may have a stray or two
    assert mostly_other[1] >= 50
    assert mostly_one[0] >= 50


def test_heavy_queries_do_not_close_all_doors():
    """What surely fits below two providers each is less than all have together."""
    children = [
        subtree(
            name,
            {name: 1, f"{name}'": 1},
            *(
                running(f"{name}{i}", owner, substreams=(i % 2,), weight=2.0)
                for i in range(8)
                for owner in [name if i < 4 else f"{name}'"]
            ),
        )
        for name in "ab"
    ]
    assert kinds_after(children, adapted(children, 8.8)) == [[0, 8], [8, 0]]


def test_while_many_rest_nothing_is_mapped_anew():
    """Of an even mixture, no single move pays."""
    children = mixed(count=20)
    resting = {f"a{i}" for i in range(8)}
    assert kinds_after(children, adapted(children, 30.0, cost=20_000.0)) == [[0, 20], [20, 0]]
    assert adapted(children, 30.0, cost=20_000.0, resting=resting) == []


def test_only_as_many_come_as_their_providers_have_room_for():
    picture = Picture(
        [subtree("a", {"a": 1}, *alike("a", 0, 3)), subtree("b", {"b": 1})], APART, {}
    )
    comes = [Decision(running(f"n{i}", "far"), None, 0) for i in range(3)]
    assert accepted(comes, picture, 4.0, leaving=()) == comes[:1]
    assert accepted(comes, picture, 4.0, leaving=("a1",)) == comes[:2]
    goes = Decision(picture.children[0].running["a0"], 0, 1)
    assert accepted([*comes, goes], picture, 4.0, leaving=()) == [*comes[:2], goes]


def test_the_cut_is_that_of_what_runs():
    assert cut(Picture(one_astray(), APART, RATES)) == 3 * 10 * 20
    assert cut(Picture([subtree("a", {"a": 1})], APART, RATES)) == 0


def test_a_plan_does_not_count_on_those_that_rest_to_leave():
    """Full children can only change queries; what rests does not, so nobody comes for it."""
    children = mixed(count=20)
    resting = {f"a{i}" for i in range(0, 20, 2)}  # one kind, at one child
    found = adapted(children, 20.6, resting=resting)
    loads = [20, 20]
    for name, at, to in found:
        assert name not in resting
        loads[at] -= 1
        loads[to] += 1
    assert max(loads) <= 20.6
