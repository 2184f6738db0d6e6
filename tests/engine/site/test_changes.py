"""Waiting for one query: woken when it goes on, not before, and few at a time."""

from __future__ import annotations

import threading
import time

from thalweg.engine.site.changes import AT_ONCE, Changes, Turn


class Waiter:
    """Waits on a thread of its own."""

    def __init__(self, changes: Changes, query: str, since: int, timeout_s: float = 30) -> None:
        self.turn: Turn | None = None
        seen = changes.told

        def run() -> None:
            self.turn = changes.wait_for(query, since, seen, timeout_s)

        self.thread = threading.Thread(target=run)
        self.thread.start()

    def is_done(self, within_s: float = 10) -> bool:
        self.thread.join(within_s)
        return not self.thread.is_alive()


def test_who_waits_for_a_query_sleeps_through_the_ticks_of_others() -> None:
    reached = {"p": 5, "q": 5}
    changes = Changes(reached.__getitem__)
    mine, other = Waiter(changes, "p", 5), Waiter(changes, "q", 5)
    reached["q"] = 6
    changes.ticked()
    assert other.is_done()
    assert other.turn is not None
    assert not mine.is_done(0.2)
    reached["p"] = 6
    changes.ticked()
    assert mine.is_done()
    assert mine.turn is not None


def test_a_query_that_has_gone_on_already_is_not_waited_for() -> None:
    changes = Changes({"p": 6}.__getitem__)
    assert changes.wait_for("p", 5, changes.told, 30) is not None


def test_any_other_change_wakes_all() -> None:
    changes = Changes(lambda _: 0)
    seen = changes.told
    waiting = [Waiter(changes, "p", 0) for _ in range(2)]
    changes.tell()
    assert all(w.is_done() and w.turn is not None for w in waiting)
    assert changes.wait_for("p", 0, seen, 30) is not None  # it came before the wait


def test_who_waits_in_vain_gets_no_turn() -> None:
    changes = Changes(lambda _: 0)
    assert changes.wait_for("p", 0, changes.told, 0.01) is None


def test_few_look_at_once_and_the_others_follow() -> None:
    reached = {"p": 0}
    changes = Changes(reached.__getitem__)
    waiting = [Waiter(changes, "p", 0) for _ in range(3 * AT_ONCE)]
    time.sleep(0.2)  # all of them wait
    reached["p"] = 1
    changes.ticked()
    done: list[Waiter] = []
    for many in range(AT_ONCE, 3 * AT_ONCE + 1):
        until = time.monotonic() + 10
        while len(done) < many and time.monotonic() < until:
            done += [w for w in waiting if w.turn is not None and w not in done]
        assert len(done) == many
        oldest = done[many - AT_ONCE].turn
        assert oldest is not None
        oldest.over()
        oldest.over()  # once only counts
    for waiter in waiting:
        assert waiter.is_done()


def test_a_turn_that_nobody_waited_for_counts_among_the_few() -> None:
    changes = Changes(lambda _: 0)
    turns = [changes.turn() for _ in range(AT_ONCE)]
    late: list[Turn] = []
    thread = threading.Thread(target=lambda: late.append(changes.turn()))
    thread.start()
    thread.join(0.2)
    assert not late
    turns[0].over()
    thread.join(10)
    assert late
