"""A proxy: one lease at a time, and old owners are fenced off."""

from tests.overlay.distribution.making import epoch, query

from thalweg.overlay.distribution.messages import Leased, Renew, Superseded
from thalweg.overlay.distribution.proxy_leases import Guards
from thalweg.overlay.protocol import Persist

SECOND = 1_000_000
LEASE = 3 * SECOND
LATER = 100 * SECOND


def proxy(now_us=0, persisted=None):
    guards = Guards(LEASE)
    guards.start(now_us, persisted or {})
    return guards


def guarding(name="q"):
    guards = proxy()
    guards.keep(0, query(name), None)
    return guards


def renew(guards, now_us, *claims):
    answers, _ = guards.renew(now_us, Renew(now_us, claims))
    return answers


def leased(answers):
    return [claim for a in answers if isinstance(a, Leased) for claim in a.claims]


def test_an_owner_gets_a_lease_and_keeps_it():
    guards = guarding()
    for now_us in range(LATER, LATER + 10 * SECOND, SECOND):
        assert leased(renew(guards, now_us, ("q", epoch(1)))) == [("q", epoch(1))]


def test_a_higher_epoch_waits_until_the_last_lease_has_surely_run_out():
    guards = guarding()
    renew(guards, LATER, ("q", epoch(1)))
    assert leased(renew(guards, LATER + LEASE, ("q", epoch(2)))) == []
    assert leased(renew(guards, LATER + LEASE + LEASE // 10, ("q", epoch(2)))) == [("q", epoch(2))]


def test_an_old_owner_is_told_as_soon_as_a_new_one_is_known():
    guards = guarding()
    renew(guards, LATER, ("q", epoch(1)))
    renew(guards, LATER + 1, ("q", epoch(2)))
    assert renew(guards, LATER + 2, ("q", epoch(1))) == [Superseded("q", epoch(2))]


def test_a_proxy_that_has_just_started_leases_nothing_yet():
    guards = guarding()
    answers, effects = guards.renew(1, Renew(1, (("q", epoch(1)),)))
    assert leased(answers) == []
    kept = {e.key: e.value for e in effects if isinstance(e, Persist)}
    again = proxy(LATER, kept)
    assert again.kept["q"].epoch == epoch(1)
    assert leased(renew(again, LATER + LEASE, ("q", epoch(2)))) == []
    assert leased(renew(again, LATER + 2 * LEASE, ("q", epoch(2)))) == [("q", epoch(2))]


def test_what_was_withdrawn_stays_so_after_a_restart():
    guards = guarding()
    kept = {e.key: e.value for e in guards.withdraw("q") if e.value is not None}
    again = proxy(LATER, kept)
    assert again.keep(LATER, query("q"), epoch(5)) == []
    assert renew(again, 2 * LATER, ("q", epoch(5))) == [Superseded("q", None)]


def test_a_proxy_that_lost_its_disk_asks_what_it_should_know():
    assert renew(proxy(), LATER, ("q", epoch(3))) == [Leased(LATER, (), ("q",))]


def test_silence_is_noticed():
    guards = guarding()
    renew(guards, 5 * SECOND, ("q", epoch(1)))
    assert guards.silent(12 * SECOND, 8 * SECOND) == []
    assert [g.query.name for g in guards.silent(14 * SECOND, 8 * SECOND)] == ["q"]
