"""Good deployments pass, and every kind of damage is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.placement.deployments import random_case, with_queries
from tests.placement.problems import TWO_WAY, problem_of, two_way

from thalweg.placement.arrays import NONE
from thalweg.placement.deployment import Deployment, deployment, nothing
from thalweg.placement.problem import Problem
from thalweg.placement.verify import Rule, verify, verify_shares

SEEDS = st.integers(0, 10_000)
PICKS = st.integers(0, 10_000)


def rules(problem: Problem, chosen: Deployment) -> set[Rule]:
    return {v.rule for v in verify(problem, chosen)}


def damaged(chosen: Deployment, **changes: object) -> Deployment:
    return replace(chosen, **changes)


@given(SEEDS)
def test_a_right_deployment_passes(seed: int) -> None:
    problem, chosen = random_case(seed)
    assert verify(problem, chosen) == ()


def test_doing_nothing_is_right() -> None:
    assert verify(two_way(), nothing(2)) == ()


@given(SEEDS, PICKS)
def test_a_lost_send_is_missed(seed: int, pick: int) -> None:
    problem, chosen = random_case(seed)
    assume(len(chosen.sends))
    lost = pick % len(chosen.sends)
    kept = damaged(chosen, sends=np.delete(chosen.sends, lost, axis=0))
    _, receiver, stream = chosen.sends[lost]
    told = [str(v) for v in verify(problem, kept)]
    onward = any(h == receiver and s == stream for h, _, s in chosen.sends)
    used = any(
        h == receiver and stream in problem.operators.inputs[o].tolist() for h, o in chosen.runs
    )
    served = ((chosen.serves == receiver) & (problem.queries.wanted == stream)).any()
    # A relay that nobody needs may go: the lot draws such relays too.
    assert bool(told) == bool(onward or used or served)
    assert all(problem.streams.names[stream] in text for text in told[:1])


@given(SEEDS, PICKS)
def test_a_lost_run_is_missed(seed: int, pick: int) -> None:
    problem, chosen = random_case(seed)
    assume(len(chosen.runs))
    lost = pick % len(chosen.runs)
    kept = damaged(chosen, runs=np.delete(chosen.runs, lost, axis=0))
    assert rules(problem, kept) & {Rule.AVAILABILITY, Rule.DEMAND}


@given(SEEDS, PICKS)
def test_a_second_way_is_named(seed: int, pick: int) -> None:
    problem, chosen = random_case(seed)
    assume(len(chosen.sends))
    _, receiver, stream = chosen.sends[pick % len(chosen.sends)]
    taken = {h for h, m, s in chosen.sends if (m, s) == (receiver, stream)} | {receiver}
    other = next(h for h in range(len(problem.hosts)) if h not in taken)
    more = np.vstack([chosen.sends, [other, receiver, stream]])
    assert Rule.PROVIDER in rules(problem, damaged(chosen, sends=more))


@given(SEEDS, PICKS)
def test_a_loop_that_feeds_itself_is_named(seed: int, pick: int) -> None:
    """The receiver of a send sends back, and the sender gets it from nowhere else."""
    problem, chosen = random_case(seed)
    derived = [i for i, (h, _, s) in enumerate(chosen.sends) if problem.streams.home[s] != h]
    assume(derived)
    sender, receiver, stream = chosen.sends[derived[pick % len(derived)]]
    feeds = [i for i, (_, m, s) in enumerate(chosen.sends) if (m, s) == (sender, stream)]
    makes = [
        i
        for i, (h, o) in enumerate(chosen.runs)
        if h == sender and problem.operators.output[o] == stream
    ]
    looped = damaged(
        chosen,
        runs=np.delete(chosen.runs, makes, axis=0),
        sends=np.vstack([np.delete(chosen.sends, feeds, axis=0), [receiver, sender, stream]]),
    )
    found = rules(problem, looped)
    assert Rule.CAUSALITY in found
    assert Rule.AVAILABILITY not in found


@given(SEEDS, PICKS)
def test_a_result_served_where_it_is_not_is_named(seed: int, pick: int) -> None:
    problem, chosen = random_case(seed)
    admitted = np.flatnonzero(chosen.serves != NONE)
    assume(len(admitted))
    query = admitted[pick % len(admitted)]
    wanted = problem.queries.wanted[query]
    has = {m for _, m, s in chosen.sends if s == wanted}
    has |= {h for h, o in chosen.runs if problem.operators.output[o] == wanted}
    others = [h for h in range(len(problem.hosts)) if h not in has]
    assume(others)
    serves = chosen.serves.copy()
    serves[query] = others[0]
    assert Rule.DEMAND in rules(problem, damaged(chosen, serves=serves))


@given(SEEDS, PICKS, st.sampled_from(["cpu", "out_bps", "in_bps", "link_bps"]))
def test_a_capacity_that_is_too_small_is_named(seed: int, pick: int, column: str) -> None:
    problem, chosen = random_case(seed)
    capacity = getattr(problem.hosts, column).copy()
    used = np.argwhere(capacity > 0)
    assume(len(used))
    short = tuple(used[pick % len(used)])
    capacity[short] *= 1 - 1e-6
    smaller = Problem(
        replace(problem.hosts, **{column: capacity}),
        problem.streams,
        problem.operators,
        problem.queries,
    )
    rule = {
        "cpu": Rule.CPU,
        "out_bps": Rule.BANDWIDTH_OUT,
        "in_bps": Rule.BANDWIDTH_IN,
        "link_bps": Rule.LINK,
    }[column]
    (violation,) = verify(smaller, chosen)
    assert violation.rule is rule
    assert violation.message.startswith(problem.hosts.names[short[0]])


@given(SEEDS, PICKS)
def test_a_broken_pin_is_named(seed: int, pick: int) -> None:
    problem, chosen = random_case(seed)
    assume(len(chosen.runs))
    host, operator = chosen.runs[pick % len(chosen.runs)]
    pinned = problem.operators.pinned.copy()
    pinned[operator] = (host + 1) % len(problem.hosts)
    operators = replace(problem.operators, pinned=pinned)
    strict = Problem(problem.hosts, problem.streams, operators, problem.queries)
    assert rules(strict, chosen) == {Rule.PIN}
    pinned[operator] = host
    assert rules(strict, chosen) == set()


@given(SEEDS, PICKS)
def test_latency_is_the_longest_way_from_a_home(seed: int, pick: int) -> None:
    problem, chosen = random_case(seed)
    admitted = np.flatnonzero(chosen.serves != NONE)
    assume(len(admitted))
    query = admitted[pick % len(admitted)]
    delay = _delay(problem, chosen, int(chosen.serves[query]), int(problem.queries.wanted[query]))
    bounds = problem.queries.latency_bound_ms.copy()
    bounds[query] = delay
    exact = with_queries(problem, replace(problem.queries, latency_bound_ms=bounds.copy()))
    assert verify(exact, chosen) == ()
    assume(delay > 0)
    bounds[query] = delay * 0.999
    tight = with_queries(problem, replace(problem.queries, latency_bound_ms=bounds))
    assert rules(tight, chosen) == {Rule.LATENCY}


def _delay(problem: Problem, chosen: Deployment, host: int, stream: int) -> float:
    if problem.streams.home[stream] == host:
        return 0.0
    for h, o in chosen.runs:
        if h == host and problem.operators.output[o] == stream:
            inputs = problem.operators.inputs[o].tolist()
            return max(_delay(problem, chosen, host, s) for s in inputs)
    (sender,) = (h for h, m, s in chosen.sends if (m, s) == (host, stream))
    assert problem.hosts.latency_ms is not None
    return _delay(problem, chosen, sender, stream) + problem.hosts.latency_ms[sender, host]


@pytest.mark.parametrize(
    ("chosen", "rule"),
    [
        (deployment(2, sends=[(0, 0, 0)]), Rule.SELF_SEND),
        (deployment(2, runs=[(7, 0)]), Rule.REFERENCE),
        (deployment(2, runs=[(0, 1)]), Rule.REFERENCE),
        (deployment(2, sends=[(0, 1, 3)]), Rule.REFERENCE),
        (deployment(2, serves={0: 3}), Rule.REFERENCE),
        (deployment(2, wants=[(0, 9)]), Rule.REFERENCE),
        (deployment(3), Rule.REFERENCE),
        (deployment(2, sends=[(1, 2, 0)]), Rule.AVAILABILITY),
        (deployment(2, runs=[(0, 0)]), Rule.AVAILABILITY),
        (deployment(2, wants=[(0, 2)]), Rule.AVAILABILITY),
        (deployment(2, serves={0: 0}), Rule.DEMAND),
    ],
)
def test_plain_mistakes_are_named(chosen: Deployment, rule: Rule) -> None:
    assert rule in rules(two_way(), chosen)


def test_one_stream_is_served_by_one_host() -> None:
    both = deployment(2, runs=[(1, 0)], sends=[(0, 1, 0), (1, 2, 2)], serves={0: 1, 1: 2})
    assert rules(two_way(), both) == {Rule.DEMAND}


def test_a_result_goes_to_all_its_users_at_the_price_of_one() -> None:
    document = TWO_WAY | {"hosts": [h | {"out_bps": 40} for h in TWO_WAY["hosts"]]}
    document["hosts"][1] = {"name": "h1", "cpu": 7, "out_bps": 5, "in_bps": 40}
    once = deployment(2, runs=[(1, 0)], sends=[(0, 1, 0)], serves={0: 1, 1: 1})
    assert verify(problem_of(document), once) == ()


def test_a_query_with_a_proxy_is_served_there() -> None:
    queries = [{"name": "q0", "wants": "ab"}, {"name": "q1", "wants": "ab", "proxy": "h2"}]
    problem = problem_of(TWO_WAY | {"queries": queries})
    runs, sends = [(1, 0)], [(0, 1, 0), (1, 2, 2)]
    assert rules(problem, deployment(2, runs=runs, sends=sends, serves={0: 1, 1: 2})) == set()
    assert rules(problem, deployment(2, runs=runs, sends=sends, serves={1: 1})) == {Rule.PROXY}


def test_with_wants_the_overlay_brings_what_exists() -> None:
    problem = two_way()
    good = deployment(2, runs=[(2, 0)], serves={0: 2}, wants=[(2, 0), (2, 1)])
    assert verify(problem, good) == ()
    hungry = deployment(2, runs=[(2, 0)], serves={0: 2}, wants=[(2, 0)])
    assert rules(problem, hungry) == {Rule.AVAILABILITY, Rule.DEMAND}
    twice = deployment(2, runs=[(2, 0)], serves={0: 2}, wants=[(2, 0), (2, 1), (2, 2)])
    assert rules(problem, twice) == {Rule.PROVIDER}


def test_shares_are_judged_by_cpu() -> None:
    problem = two_way()
    lone = deployment(2, runs=[(1, 0)], sends=[(0, 1, 0)], serves={0: 1})
    assert verify_shares(problem, lone, slack=2.0) == ()
    (violation,) = verify_shares(problem, lone, slack=1.9)
    assert violation.rule is Rule.SHARE
