"""Several protocols in one node: who hears what, and in which order."""

from dataclasses import dataclass, field

import pytest
from tests.overlay.echo import Ping

from thalweg.overlay.protocol import (
    Call,
    Deliver,
    Effect,
    Event,
    Heard,
    Init,
    Leave,
    Receive,
    Send,
    SetTimer,
    Tell,
)
from thalweg.overlay.stack import Stack


@dataclass
class Recorder:
    """Keeps what it is told; answers from a table."""

    name: str
    answers: dict[type, list[Effect]] = field(default_factory=dict)
    listens_to: tuple[str, ...] = ()
    seen: list[Event] = field(default_factory=list)
    messages = (Ping,)

    def step(self, now_us: int, event: Event) -> list[Effect]:
        self.seen.append(event)
        return self.answers.get(type(event), [])


def test_an_event_reaches_its_protocol_alone():
    low, high = Recorder("low"), Recorder("high", {Receive: [SetTimer("t", 5)]})
    effects = Stack([low, high]).step(1, "high", Receive("b", Ping(1)))
    assert effects == [("high", SetTimer("t", 5))]
    assert low.seen == []


def test_what_is_delivered_is_heard_by_listeners_and_leaves_the_node():
    low = Recorder("low", {Receive: [Deliver("up")]})
    high, deaf = Recorder("high", listens_to=("low",)), Recorder("deaf")
    effects = Stack([low, high, deaf]).step(1, "low", Receive("b", Ping(1)))
    assert effects == [("low", Deliver("up"))]
    assert high.seen == [Heard("low", "up")]
    assert deaf.seen == []


def test_telling_another_protocol_is_a_call_within_the_same_step():
    low = Recorder("low", {Call: [Send("b", Ping(2))]})
    high = Recorder("high", {Receive: [Tell("low", "do it"), SetTimer("t", 1)]})
    effects = Stack([low, high]).step(1, "high", Receive("b", Ping(1)))
    assert low.seen == [Call("do it")]
    assert effects == [("high", SetTimer("t", 1)), ("low", Send("b", Ping(2)))]


def test_protocols_start_bottom_up_with_seeds_and_drawers_of_their_own():
    low, high = Recorder("low"), Recorder("high")
    Stack([low, high]).start(0, "a", 7, {"high": {"k": b"v"}})
    first, second = low.seen[0], high.seen[0]
    assert isinstance(first, Init)
    assert isinstance(second, Init)
    assert first.seed != second.seed
    assert (first.persisted, second.persisted) == ({}, {"k": b"v"})


def test_goodbyes_are_said_from_the_top_down():
    low, high = Recorder("low", {Leave: [Deliver(1)]}), Recorder("high", {Leave: [Deliver(2)]})
    effects = Stack([low, high]).leave(0)
    assert effects == [("high", Deliver(2)), ("low", Deliver(1))]


def test_two_protocols_of_one_name_are_refused():
    with pytest.raises(ValueError, match="share a name: low, low"):
        Stack([Recorder("low"), Recorder("low")])


def test_listening_to_nobody_is_refused():
    with pytest.raises(ValueError, match="high listens to low, which is not in this stack: high"):
        Stack([Recorder("high", listens_to=("low",))])


def test_protocols_that_call_each_other_for_ever_are_stopped():
    a, b = Recorder("a", {Call: [Tell("b", 1)]}), Recorder("b", {Call: [Tell("a", 1)]})
    with pytest.raises(RuntimeError, match="for ever"):
        Stack([a, b]).step(0, "a", Call(1))
