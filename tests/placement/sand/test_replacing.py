"""What runs moves when that pays, and stays when it does not."""

from __future__ import annotations

import pytest
from tests.placement.problems import problem_of
from tests.placement.sand.test_deploying import TWO, placed

from thalweg.placement.deployment import Deployment
from thalweg.placement.migrations import Migration, migrations
from thalweg.placement.problem import Problem
from thalweg.placement.sand.deploying import deploy
from thalweg.placement.sand.optimal import optimal
from thalweg.placement.sand.planning import plan_trees
from thalweg.placement.sand.replacing import Patience
from thalweg.placement.strategy import Options


def shop(rate_a: float, *, state_bytes: float = 0.0, bound_ms: float | None = None) -> Problem:
    """a at h0, b at h1, their join wanted at h2; all hosts 5 ms apart."""
    query = {**TWO["queries"][0], "latency_bound_ms": bound_ms}  # type: ignore[index,dict-item]
    return problem_of(
        {
            **TWO,
            "streams": [
                {"name": "a", "rate_bps": rate_a, "home": "h0"},
                {"name": "b", "rate_bps": 30, "home": "h1"},
                {"name": "ab", "rate_bps": 8},
            ],
            "operators": [{**TWO["operators"][0], "state_bytes": state_bytes}],  # type: ignore[index]
            "queries": [query],
        }
    )


def again(problem: Problem, join_at: int, patience: Patience) -> tuple[Deployment, list[Migration]]:
    running = deploy(problem, [placed(problem, 0, join_at)])
    outcome = plan_trees(
        problem.with_running(running),
        Options(),
        lambda tree, ways, options: optimal(tree, ways),
        patience,
    )
    return outcome.deployment, list(migrations(problem, running, outcome.deployment))


def test_a_little_less_is_not_worth_a_move() -> None:
    """At h0 it costs (30 + 8)·5, at h1 (a + 8)·5: with a = 27 that saves 8 %."""
    assert again(shop(27), 0, Patience(0.1))[1] == []
    assert again(shop(27), 0, Patience(0.05))[1] == [Migration(0, 0, 1, 0.0)]


def test_rates_that_swing_a_little_move_nothing_to_and_fro() -> None:
    at = 0
    for rate in (28, 32, 29, 31, 28, 33):
        moved = again(shop(rate), at, Patience(0.1))[1]
        assert moved == []


def test_a_changed_rate_moves_the_join_with_its_state() -> None:
    deployed, moved = again(shop(5, state_bytes=1000), 0, Patience(0.1, horizon_s=3600))
    assert moved == [Migration(0, 0, 1, 1000)]
    assert deployed.runs.tolist() == [[1, 0]]


def test_state_that_would_take_longer_than_the_horizon_stays() -> None:
    """25 bps × 5 ms are saved; 1,000 bytes over 5 ms pay after 8,000 / 25 = 320 s."""
    problem = shop(5, state_bytes=1000)
    assert again(problem, 0, Patience(0.1, horizon_s=319))[1] == []
    assert len(again(problem, 0, Patience(0.1, horizon_s=321))[1]) == 1


def test_a_broken_bound_moves_at_any_price() -> None:
    """At h3 the result comes after 25 ms, which was allowed before."""
    deployed, moved = again(shop(40, state_bytes=1e12, bound_ms=12), 3, Patience(0.9))
    assert [m.source for m in moved] == [3]
    assert deployed.admitted == 1


@pytest.mark.parametrize(("saving", "horizon_s"), [(-0.1, 1), (1.0, 1), (0.1, 0)])
def test_impatience_without_sense_is_refused(saving: float, horizon_s: float) -> None:
    with pytest.raises(ValueError, match=r"saving|horizon"):
        Patience(saving, horizon_s)
