"""What waits for its step."""

import threading
import time
from concurrent.futures import Future

from tests.overlay.echo import Ping

from thalweg.overlay.driving import Timer
from thalweg.runtime.driver.inbox import Asked, Inbox, Mail


def mail(number):
    return Mail("a:1", "echo", Ping(number))


def asked(number):
    return Asked("echo", number, Future())


def taken(inbox, most):
    """Numbers of messages, numbers of requests."""
    _, items = inbox.take(lambda: 0, most)
    messages = [i.message.number for i in items if isinstance(i, Mail)]
    return messages, [i.request for i in items if isinstance(i, Asked)]


def test_neither_messages_nor_requests_keep_the_others_waiting():
    inbox = Inbox(100)
    for number in range(20):
        inbox.put(asked(number))
    assert taken(inbox, 4) == ([], [0, 1, 2, 3])
    for number in range(3):
        inbox.put(mail(number))
    assert taken(inbox, 4) == ([0, 1], [4, 5])
    assert taken(inbox, 4) == ([2], [6, 7, 8])
    for number in range(3, 30):
        inbox.put(mail(number))
    assert taken(inbox, 4) == ([3, 4], [9, 10])
    assert len(inbox) == 25 + 9


def test_what_was_put_back_comes_first_and_in_order():
    inbox = Inbox(100)
    for number in range(4):
        inbox.put(mail(number))
        inbox.put(asked(number))
    _, items = inbox.take(lambda: 0, 8)
    inbox.put_back(items[2:])
    assert taken(inbox, 8) == ([2, 3], [0, 1, 2, 3])


def test_timers_that_are_due_come_with_what_waits():
    inbox = Inbox(100)
    timers = {key: Timer(None, "echo", key) for key in "abc"}
    for due_us, key in ((30, "b"), (10, "a"), (20, "c")):
        inbox.wake_at(due_us, timers[key])
    timers["c"].is_set = False
    inbox.put(mail(1))
    due, items = inbox.take(lambda: 30, 8)
    assert [t.key for t in due] == ["a", "b"]
    assert len(items) == 1


def test_who_waits_is_woken_by_what_comes_and_by_the_clock():
    inbox = Inbox(100)
    threading.Timer(0.05, lambda: inbox.put(mail(7))).start()
    assert taken(inbox, 8) == ([7], [])

    def clock():
        return time.monotonic_ns() // 1000

    inbox.wake_at(clock() + 50_000, Timer(None, "echo", "t"))
    due, _ = inbox.take(clock, 8)
    assert [t.key for t in due] == ["t"]


def test_closing_wakes_who_waits_and_gives_back_requests():
    inbox = Inbox(100)
    threading.Timer(0.05, inbox.close).start()
    assert inbox.take(lambda: 0, 8) is None
    assert not inbox.put(mail(1))
    other = Inbox(100)
    other.put(asked(1))
    other.put(mail(1))
    assert [r.request for r in other.close()] == [1]
