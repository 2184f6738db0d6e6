"""One node at a time: what it writes down before it speaks, and what it does with old words."""

import pytest

from thalweg.adapt.partners import messages as say
from thalweg.adapt.partners.protocol import Partners
from thalweg.adapt.partners.settings import Settings
from thalweg.overlay.membership import Membership
from thalweg.overlay.protocol import Call, Deliver, Init, Persist, Receive, Send, TimerFired

SECOND_US = 1_000_000
F = say.Fragment("f", "home", (("g", "other"),))
SETTINGS = Settings()


def node(address, persisted=None):
    made = Partners(Membership(), SETTINGS)
    made.step(0, Init(address, 1, persisted or {}))
    return made


def sent(effects, kind):
    return [e for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]


def told(effects, kind):
    return [e.value for e in effects if isinstance(e, Deliver) and isinstance(e.value, kind)]


def disk(effects, before=None):
    kept = dict(before or {})
    for e in effects:
        if isinstance(e, Persist):
            kept[e.key] = e.value
    return {k: v for k, v in kept.items() if v is not None}


def owner_with_f(epoch=5):
    made = node("owner")
    ship = say.Ship(F, epoch, 100, b"100", 0.2, 10.0, "")
    effects = made.step(0, Receive("giver", ship))
    return made, effects


def test_who_is_shipped_a_fragment_writes_it_down_before_it_answers():
    _, effects = owner_with_f()
    kinds = [type(e) for e in effects]
    assert kinds.index(Persist) < kinds.index(Send)
    assert sent(effects, say.Shipped) == [Send("giver", say.Shipped("f", 5))]
    assert told(effects, say.Start) == [say.Start("f", 5, 100, b"100")]


def test_it_decides_only_once_the_home_gave_a_lease_and_only_as_long():
    owner, effects = owner_with_f()
    assert not owner.holdings.decides("f", 0)
    [renew] = sent(effects, say.Renew)
    assert renew.to == "home"
    owner.step(SECOND_US, Receive("home", say.Lease((("f", 5),), renew.message.stamp_us, ())))
    assert owner.holdings.decides("f", SECOND_US)
    assert owner.holdings.decides("f", SETTINGS.lease_us - 1)
    assert not owner.holdings.decides("f", SETTINGS.lease_us)  # counted from when it asked


def test_a_lease_of_another_epoch_or_from_another_node_does_not_count():
    owner, _ = owner_with_f()
    owner.step(1, Receive("home", say.Lease((("f", 4),), 0, ())))
    owner.step(1, Receive("liar", say.Lease((("f", 5),), 0, ())))
    assert not owner.holdings.decides("f", 2)


def test_a_ship_that_comes_again_is_answered_and_not_started_again():
    owner, _ = owner_with_f()
    again = owner.step(9, Receive("giver", say.Ship(F, 5, 100, b"100", 0.2, 10.0, "")))
    assert sent(again, say.Shipped)
    assert not told(again, say.Start)


def given(owner):
    """The owner agrees to give f to `new`, stops it, and has its state."""
    owner.holdings.stop("f", "new", "why")
    return owner.step(10, Call(say.Extracted("f", 5, 140, b"140")))


def test_a_stopped_fragment_is_on_disk_as_leaving_before_the_home_hears_of_it():
    owner, before = owner_with_f()
    effects = given(owner)
    assert next(type(e) for e in effects) is Persist
    assert sent(effects, say.Transfer) == [Send("home", say.Transfer("f", 5, "new", 140))]
    again = node("owner", disk(effects, disk(before)))
    assert "f" not in again.holdings.held
    pushed = again.step(SECOND_US, TimerFired("round"))
    assert sent(pushed, say.Transfer)  # a crash does not lose it
    shipped = again.step(SECOND_US, Receive("home", say.Transferred("f", 6)))
    [ship] = sent(shipped, say.Ship)
    assert (ship.to, ship.message.epoch, ship.message.state) == ("new", 6, b"140")


def test_what_was_given_away_does_not_come_back_by_an_old_ship():
    owner, before = owner_with_f()
    effects = given(owner)
    effects += owner.step(11, Receive("home", say.Transferred("f", 6)))
    effects += owner.step(12, Receive("new", say.Shipped("f", 6)))
    assert not owner.holdings.leaving
    again = node("owner", disk(effects, disk(before)))
    old = again.step(20, Receive("giver", say.Ship(F, 5, 100, b"100", 0.2, 10.0, "")))
    assert sent(old, say.Shipped)
    assert not again.holdings.held


def home_with_f():
    home = node("home")
    home.step(0, Call(say.Delegate((F,))))
    home.step(SETTINGS.expiry_us, TimerFired("round"))
    return home


def test_a_home_starts_its_fragments_once_no_older_lease_can_hold():
    home = node("home")
    home.step(0, Call(say.Delegate((F,))))
    assert not told(home.step(SETTINGS.expiry_us - 1, TimerFired("round")), say.Start)
    assert told(home.step(SETTINGS.expiry_us, TimerFired("round")), say.Start)


def test_the_next_epoch_is_on_disk_before_anybody_hears_of_it_and_the_old_owner_is_told_off():
    home = home_with_f()
    epoch = home.homes.records["f"].epoch
    now = SETTINGS.expiry_us + 1
    effects = home.step(now, Receive("home", say.Transfer("f", epoch, "new", 7)))
    assert next(type(e) for e in effects) is Persist
    assert sent(effects, say.Transferred)[0].message == say.Transferred("f", epoch + 1)
    late = home.step(now, Receive("home", say.Renew((("f", epoch, 9),), now)))
    assert sent(late, say.Stale) == [Send("home", say.Stale("f", epoch))]
    assert not sent(late, say.Lease)
    good = home.step(now, Receive("new", say.Renew((("f", epoch + 1, 9),), now)))
    assert sent(good, say.Lease)[0].message.entries == (("f", epoch + 1),)


def test_a_silent_owner_s_fragment_is_taken_back_from_where_it_was_heard_last():
    home = home_with_f()
    epoch = home.homes.records["f"].epoch
    now = SETTINGS.expiry_us + 1
    home.step(now, Receive("home", say.Transfer("f", epoch, "new", 7)))
    home.step(now, Receive("new", say.Renew((("f", epoch + 1, 42),), now)))
    home.holdings.held.clear()
    silent = home.step(now + SETTINGS.expiry_us, TimerFired("round"))
    assert told(silent, say.Start) == [say.Start("f", epoch + 2, 42, b"")]


def test_a_transfer_that_comes_again_is_answered_alike():
    home = home_with_f()
    epoch = home.homes.records["f"].epoch
    transfer = Receive("home", say.Transfer("f", epoch, "new", 7))
    first, second = (home.step(SETTINGS.expiry_us + 1, transfer) for _ in range(2))
    assert sent(first, say.Transferred) == sent(second, say.Transferred)
    assert not [e for e in second if isinstance(e, Persist)]


def test_a_fragment_can_only_be_delegated_to_its_home():
    with pytest.raises(ValueError, match="the home of f is home, not elsewhere"):
        node("elsewhere").step(0, Call(say.Delegate((F,))))


def test_partners_ask_for_those_with_most_neighbours_first_and_bound_those_who_ask():
    home = node("a")
    near = [say.Fragment(f"x{i}", "a", (("y", "b"), ("z", "c" if i else "b"))) for i in range(3)]
    home.step(0, Call(say.Delegate(tuple(near))))
    assert home.homes.neighbouring_factors() == {"b": 4, "c": 2}
    answers = [home.step(1, Receive(f"p{i}", say.Propose(0.1))) for i in range(SETTINGS.max2 + 1)]
    assert [type(a[0].message) for a in answers] == [say.Accept] * SETTINGS.max2 + [say.Reject]
    assert home.circle.g2 == [f"p{i}" for i in range(SETTINGS.max2)]
