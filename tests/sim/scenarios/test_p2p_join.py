"""Joins between peers with a rule dropped are caught by their scenario."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.p2p.answers import Answers
from thalweg.overlay.p2p.claims import Claims
from thalweg.overlay.p2p.leading import Draft
from thalweg.overlay.p2p.source import Sources
from thalweg.overlay.p2p.stems import Stems
from thalweg.sim.run import run
from thalweg.sim.scenarios.p2p_join import P2PJoinScenario

ENOUGH_SEEDS = range(40)
RARER = range(100, 125)  # it takes a tuple that comes while its bucket changes hands


def _never_purges(stems, frontier, names):
    return 0


def _moves_no_entries(sources, claim, lacking):
    return ()


def _runs_ahead(draft, committed):
    promised = [e.frontier for e in draft.entries.values()]
    return max(committed.frontier, max(promised, default=0))


def _acknowledges_at_once(owner, holding):
    return True


def _wakes_unheard(sources, source):
    return True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "rule", "broken", "seeds"),
    [
        (Stems, "purge", _never_purges, ENOUGH_SEEDS),
        (Answers, "_retained", _moves_no_entries, ENOUGH_SEEDS),
        (Draft, "issued", _runs_ahead, ENOUGH_SEEDS),
        (Claims, "is_complete", _acknowledges_at_once, RARER),
        (Sources, "_is_awake", _wakes_unheard, ENOUGH_SEEDS),
    ],
    ids=lambda v: getattr(v, "__name__", str(v)),
)
def test_a_dropped_rule_is_caught(where, rule, broken, seeds, monkeypatch):
    monkeypatch.setattr(where, rule, broken)
    assert is_caught(P2PJoinScenario, seeds)


def test_results_are_compared_and_there_are_some(monkeypatch):
    """A judge that sees nothing would find nothing wrong."""
    seen = []
    monkeypatch.setattr(
        P2PJoinScenario,
        "delivered",
        lambda self, host, protocol, value, _=P2PJoinScenario.delivered: (
            seen.append(value),
            _(self, host, protocol, value),
        )[1],
    )
    outcome = run(P2PJoinScenario, 1)
    assert outcome.problem is None
    changes = [c for v in seen if type(v).__name__ == "Final" for c in v.changes]
    assert len(changes) > 50
