"""The hash of what happened."""

from tests.overlay.echo import Ping

from thalweg.overlay.protocol import Call, Receive, TimerFired
from thalweg.sim.trace import Trace


def _digest(*events):
    trace = Trace()
    for event in events:
        trace.event(*event)
    return trace.digest


def test_time_place_and_content_count():
    base = (5, "a", "echo", Receive("b", Ping(1)))
    others = [
        (6, "a", "echo", Receive("b", Ping(1))),
        (5, "c", "echo", Receive("b", Ping(1))),
        (5, "a", "other", Receive("b", Ping(1))),
        (5, "a", "echo", Receive("c", Ping(1))),
        (5, "a", "echo", Receive("b", Ping(2))),
        (5, "a", "echo", TimerFired("b")),
        (5, "a", "echo", Call("b")),
    ]
    assert len({_digest(base), *map(_digest, others)}) == 1 + len(others)
    assert _digest(base) == _digest(base)


def test_the_order_counts():
    first, second = (5, "a", "echo", TimerFired("x")), (5, "a", "echo", TimerFired("y"))
    assert _digest(first, second) != _digest(second, first)


def test_switches_of_machines_count():
    trace = Trace()
    before = trace.digest
    trace.note(5, "a", "crash")
    assert trace.digest != before
