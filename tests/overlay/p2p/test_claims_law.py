"""What is acknowledged has met, under any order of messages and any belief of who owns what."""

from tests.overlay.p2p.claims_world import ClaimsWorld

from thalweg.overlay.p2p.claims import Claims

RUNS, ROUNDS = 10, 60


def _lived_through(seed):
    world = ClaimsWorld(seed)
    for _ in range(ROUNDS):
        world.round()
    world.calm()
    return world


def test_two_tuples_that_are_acknowledged_have_met():
    rows = 0
    for seed in range(RUNS):
        world = _lived_through(seed)
        rows += len(world.rows)
        assert world.missing() == [], seed
        assert world.open() == [], seed  # and all is, in the end
    assert rows > 100 * RUNS


def test_acknowledging_without_a_complete_claim_is_caught(monkeypatch):
    monkeypatch.setattr(Claims, "is_complete", lambda claims, holding: True)
    assert any(_lived_through(seed).missing() for seed in range(4))


def test_counting_on_answers_from_before_another_had_the_promise_is_caught(monkeypatch):
    mended = Claims.refused

    def refused(claims, now_us, message):
        before = [(h, {level: set(had) for level, had in h.had.items()}) for h in claims.holdings]
        effects = mended(claims, now_us, message)
        for holding, had in before:
            holding.had.update(had)
        return effects

    monkeypatch.setattr(Claims, "refused", refused)
    assert _lived_through(37).missing()
