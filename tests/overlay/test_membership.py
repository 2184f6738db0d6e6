"""Membership, step by step."""

import pytest

from thalweg.overlay.membership import (
    Ack,
    Compare,
    Doubt,
    Down,
    Farewell,
    Join,
    Membership,
    Ping,
    PingFor,
    Settings,
    Up,
)
from thalweg.overlay.protocol import (
    Call,
    Deliver,
    Init,
    Leave,
    Persist,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)
from thalweg.overlay.view import ALIVE, DOWN, LEFT, SUSPECT, Word


def _of(kind, effects):
    return [e for e in effects if isinstance(e, kind)]


# What is said of `a`, in the order in which it is said.
GIVEN_UP = (Word("a", 0, SUSPECT), Word("a", 0, DOWN))


def _member(*others, persisted=None):
    """Node `me`, to whom the others have introduced themselves."""
    node = Membership()
    node.step(0, Init("me", 1, persisted or {}))
    for other in others:
        node.step(0, Receive(other, Compare((Word(other, 0, ALIVE),), True)))
    return node


def test_a_newcomer_asks_its_contacts_and_goes_on_asking():
    node = _member()
    asked = _of(Send, node.step(0, Call(Join(("a", "b", "me")))))
    assert sorted(s.to for s in asked) == ["a", "b"]
    assert [type(s.message) for s in asked] == [Compare, Compare]
    again = _of(Send, node.step(0, TimerFired("compare")))
    assert again[0].to in ("a", "b")
    assert node.up() == []
    assert not node.is_down("a")


def test_who_compares_gets_everything_and_is_up():
    node = _member("a")
    effects = node.step(0, Receive("b", Compare((Word("b", 0, ALIVE),), False)))
    assert effects[0] == Deliver(Up("b"))
    words = (Word("me", 0, ALIVE), Word("a", 0, ALIVE), Word("b", 0, ALIVE))
    assert effects[1] == Send("b", Compare(words, True))


def test_a_probe_without_an_answer_asks_helpers_then_suspects_then_gives_up():
    node = _member("a", "b", "c")
    probe = _of(Send, node.step(0, TimerFired("probe")))[0]
    target, token = probe.to, probe.message.token
    helpers = _of(Send, node.step(0, TimerFired(("ack", token))))
    assert [type(s.message) for s in helpers] == [PingFor, PingFor]
    assert target not in [s.to for s in helpers]
    node.step(0, TimerFired(("suspect", token)))
    assert node.view.words[target].status == SUSPECT
    assert target in node.up()
    assert node.step(0, TimerFired(("down", target, 0))) == [Deliver(Down(target))]
    assert node.is_down(target)


def test_an_answer_ends_the_probe():
    node = _member("a")
    probe = _of(Send, node.step(0, TimerFired("probe")))[0]
    effects = node.step(0, Receive("a", Ack(probe.message.token, (Word("a", 0, ALIVE),))))
    keys = [("ack", probe.message.token), ("suspect", probe.message.token)]
    assert [e.key for e in effects] == keys


def test_a_helper_passes_the_answer_on():
    node = _member("a", "b")
    ping = _of(Send, node.step(0, Receive("a", PingFor(7, "b", ()))))[0]
    assert ping.to == "b"
    assert isinstance(ping.message, Ping)
    ack = _of(Send, node.step(0, Receive("b", Ack(ping.message.token, ()))))[0]
    assert (ack.to, ack.message.token) == ("a", 7)


def test_everybody_is_probed_once_a_round():
    node = _member(*"abcdef")
    targets = [_of(Send, node.step(0, TimerFired("probe")))[0].to for _ in range(6)]
    assert sorted(targets) == list("abcdef")


def test_the_accused_objects_with_a_new_incarnation_and_says_so():
    node = _member("a")
    effects = node.step(0, Receive("a", Ping(1, (Word("me", 0, SUSPECT),))))
    assert effects[0] == Persist("self", b"1")
    assert effects[1].message.words[0] == Word("me", 1, ALIVE)


def test_an_accusation_of_an_older_self_is_nothing():
    node = _member(persisted={"self": b"4"})
    effects = node.step(0, Receive("a", Ping(1, (Word("me", 4, DOWN),))))
    assert _of(Persist, effects) == []
    assert node.incarnation == 5


def test_who_is_thought_down_is_told_so():
    node = _member("a")
    node.step(0, Receive("b", Farewell(GIVEN_UP)))
    ack = _of(Send, node.step(0, Receive("a", Ping(1, (Word("a", 0, ALIVE),)))))[0]
    assert Word("a", 0, DOWN) in ack.message.words
    effects = node.step(0, Receive("a", Ping(2, (Word("a", 1, ALIVE),))))
    assert effects[0] == Deliver(Up("a"))


def test_who_is_called_down_out_of_the_blue_is_suspected_first():
    node = _member("a")
    effects = node.step(0, Receive("b", Compare((Word("a", 0, DOWN),), True)))
    assert effects == [SetTimer(("down", "a", 0), Settings().down_after_us)]
    assert node.up() == ["a"]


def test_the_down_are_remembered_and_asked_again():
    node = _member("a")
    node.step(0, Receive("b", Farewell(GIVEN_UP)))
    assert _of(Send, node.step(0, TimerFired("compare")))[0].to == "a"


def test_members_survive_a_restart():
    node = _member("a", "b")
    saved = _of(Persist, node.step(0, TimerFired("probe")))[0]
    assert saved.key == "members"
    again = Membership()
    effects = again.step(0, Init("me", 2, {"self": b"0", "members": saved.value}))
    assert Persist("self", b"1") in effects
    assert sorted(s.to for s in _of(Send, effects)) == ["a", "b"]


def test_leaving_is_told_and_is_not_being_down_by_accident():
    node = _member("a", "b")
    told = _of(Send, node.step(0, Leave()))
    assert sorted(s.to for s in told) == ["a", "b"]
    other = Membership()
    other.step(0, Init("a", 1, {}))
    other.step(0, Receive("me", Compare((Word("me", 0, ALIVE),), True)))
    assert other.step(0, Receive("me", told[0].message)) == [Deliver(Down("me"))]
    assert other.view.words["me"].status == LEFT


def test_a_doubted_member_is_probed_at_once_but_not_twice():
    node = _member("a")
    assert _of(Send, node.step(0, Call(Doubt("a"))))[0].to == "a"
    assert node.step(0, Call(Doubt("a"))) == []


def test_a_doubted_stranger_becomes_a_member_that_can_be_found_dead():
    node = _member("a")
    assert node.step(0, Call(Doubt("b")))[0] == Deliver(Up("b"))
    probe = max(node._probed)
    node.step(0, TimerFired(("suspect", probe)))
    assert node.step(0, TimerFired(("down", "b", 0))) == [Deliver(Down("b"))]


def test_the_down_are_not_doubted():
    node = _member("a")
    node.step(0, Receive("b", Farewell(GIVEN_UP)))
    assert node.step(0, Call(Doubt("a"))) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"period_us": 0},
        {"capacity": 0},
        {"ack_within_us": 2_000_000},
        {"down_after_us": -1},
        {"helpers": -1},
    ],
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ValueError):  # noqa: PT011
        Settings(**wrong)


def test_a_doubted_stranger_finds_a_place_in_a_full_view():
    node = Membership(Settings(capacity=2))
    node.step(0, Init("me", 1, {}))
    for other in "ab":
        node.step(0, Receive(other, Compare((Word(other, 0, ALIVE),), True)))
    node.step(0, Call(Doubt("c")))
    assert "c" in node.up()
    assert len(node.view.words) == 2
