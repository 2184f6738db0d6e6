"""The books balance: whatever is added and taken away, nothing is lost and nothing is left over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.placement.deployments import random_case
from tests.placement.problems import two_way

from thalweg.placement.arrays import NONE
from thalweg.placement.cost import load_of
from thalweg.placement.deployment import deployment
from thalweg.placement.ledger import Ledger
from thalweg.placement.problem import ProblemError
from thalweg.placement.rows import Piece, Run, Send
from thalweg.placement.sqpr.shortages import shortages

JOINED = deployment(2, runs=[(1, 0)], sends=[(0, 1, 0)], serves={0: 1, 1: 1})


@given(st.integers(0, 10_000))
def test_a_deployment_survives_the_books(seed: int) -> None:
    problem, chosen = random_case(seed)
    ledger = Ledger(problem, chosen)
    assert ledger.deployment() == chosen
    load = load_of(problem, chosen)
    np.testing.assert_allclose(ledger.cpu_left, problem.hosts.cpu - load.cpu, atol=1e-9)
    np.testing.assert_allclose(ledger.out_left, problem.hosts.out_bps - load.out_bps, atol=1e-6)
    np.testing.assert_allclose(ledger.in_left, problem.hosts.in_bps - load.in_bps, atol=1e-6)
    assert ledger.drain() == ([], [])


@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_when_the_last_query_is_gone_so_is_everything_it_needed(seed: int, random) -> None:
    problem, chosen = random_case(seed)
    ledger = Ledger(problem, chosen)
    ledger.sweep(list(ledger.providers))  # relays for nobody, which the lot draws too
    queries = np.flatnonzero(chosen.serves != NONE).tolist()
    random.shuffle(queries)
    for query in queries:
        place = ledger.result_of(query)
        ledger.unserve(query)
        ledger.sweep([place])
    assert ledger.providers == ledger.users == ledger.results == ledger.server == {}
    np.testing.assert_allclose(ledger.cpu_left, problem.hosts.cpu, atol=1e-9)


def test_a_stream_has_one_provider() -> None:
    ledger = Ledger(two_way(), JOINED)
    with pytest.raises(AssertionError, match="one way only"):
        ledger.add_send(Send(0, 1, 0))


def test_the_journal_tells_what_is_new_and_what_is_gone() -> None:
    ledger = Ledger(two_way(), JOINED)
    ledger.add_send(Send(0, 2, 0))
    ledger.add_send(Send(1, 2, 1))
    ledger.remove(Send(0, 2, 0))
    ledger.remove(Run(1, 0))
    assert ledger.drain() == ([Send(1, 2, 1)], [Run(1, 0)])
    assert ledger.drain() == ([], [])


def test_a_result_is_paid_once_and_only_its_last_query_frees_it() -> None:
    ledger = Ledger(two_way(), JOINED)
    assert ledger.out_left[1] == 95
    ledger.unserve(0)
    assert ledger.serving(2) == 1
    ledger.unserve(1)
    assert ledger.serving(2) is None
    assert ledger.out_left[1] == 100


def test_shortages_add_up_what_a_piece_needs_of_each_host() -> None:
    piece = Piece(2, 2, (Run(2, 0),), (Send(0, 2, 0), Send(1, 2, 1)))
    assert shortages(Ledger(two_way()), piece) == []
    busy = Ledger(two_way(), JOINED)
    busy.in_left[2] = 69.0
    (lack,) = shortages(busy, piece)
    assert (lack.resource, lack.host, lack.need, lack.left) == ("bandwidth in", 2, 70.0, 69.0)


@pytest.mark.parametrize(
    "running",
    [
        deployment(2, runs=[(1, 0)]),
        deployment(2, serves={0: 0}),
        deployment(2, sends=[(0, 1, 0), (2, 1, 0)]),
        deployment(2, sends=[(0, 0, 0)]),
        deployment(2, runs=[(9, 9)]),
        deployment(2, wants=[(1, 0)]),
    ],
)
def test_what_cannot_be_running_is_refused_with_its_place(running) -> None:
    with pytest.raises(ProblemError, match=r"\$\.running: "):
        Ledger(two_way(), running)
