"""The manager runs moves of different ranges at once; those of the same buckets take turns."""

import pytest

from thalweg.adapt.moves.directory import Directory, Times
from thalweg.adapt.moves.manager.manager import MOST_AT_ONCE, MOST_WAITING, Manager
from thalweg.adapt.moves.messages.commands import PartitionsToMove, Refused
from thalweg.adapt.moves.messages.records import Ended, StartMove
from thalweg.overlay.protocol import Deliver, Persist

DIRECTORY = Directory(("s", "s"), "u", "m")


@pytest.fixture
def manager():
    found = Manager(DIRECTORY, Times())
    found.restore(0, 7, {})
    return found


def named(lo, hi, sender="p1", receiver="p2"):
    return StartMove(sender, receiver, 0.0, "mslb", lo=lo, hi=hi)


def senders(manager):
    return [(m.sender, m.lo, m.hi) for m in manager.moves.values()]


def end_first(manager):
    move = next(iter(manager.moves))
    return manager.answered(1, "p1", Refused(move, "no"))


def test_different_ranges_move_at_once(manager):
    for request in (named(0, 4), named(4, 8), named(8, 12, "p3")):
        manager.start(0, request)
    assert senders(manager) == [("p1", 0, 4), ("p1", 4, 8), ("p3", 8, 12)]


def test_the_same_buckets_wait_for_their_turn_in_order(manager):
    for request in (named(0, 4), named(2, 6, "p2", "p3"), named(5, 7, "p4"), named(8, 9)):
        manager.start(0, request)
    assert senders(manager) == [("p1", 0, 4), ("p1", 8, 9)]  # 5 to 7 may not overtake 2 to 6
    end_first(manager)
    assert senders(manager) == [("p1", 8, 9), ("p2", 2, 6)]
    assert [r.lo for r in manager.waiting] == [5]


def test_named_buckets_wait_while_their_sender_has_still_to_choose(manager):
    manager.start(0, StartMove("p1", "p2", 0.5, "precopy"))
    manager.start(0, named(0, 4, "p1"))
    manager.start(0, named(0, 4, "p5"))
    assert [m.sender for m in manager.moves.values()] == ["p1"]
    move = next(iter(manager.moves))
    manager.answered(1, "p1", PartitionsToMove(move, 6, 8, 0))
    manager.start(1, named(4, 6, "p1"))
    assert [m.lo for m in manager.moves.values()] == [6, 4]


def test_only_so_many_at_once_and_only_so_many_wait(manager):
    for number in range(MOST_AT_ONCE + MOST_WAITING):
        manager.start(0, named(2 * number, 2 * number + 1))
    assert (len(manager.moves), len(manager.waiting)) == (MOST_AT_ONCE, MOST_WAITING)
    (ended,) = [e.value for e in manager.start(0, named(900, 901)) if isinstance(e, Deliver)]
    assert isinstance(ended, Ended)
    assert ended.outcome == f"refused: {MOST_WAITING} moves are waiting"
    end_first(manager)
    assert (len(manager.moves), len(manager.waiting)) == (MOST_AT_ONCE, MOST_WAITING - 1)


def test_a_manager_that_restarts_goes_on_with_all_of_them(manager):
    disk = {}
    for request in (named(0, 4), named(4, 8), named(0, 2, "p2", "p3")):
        for effect in manager.start(0, request):
            if isinstance(effect, Persist):
                disk[effect.key] = effect.value
    again = Manager(DIRECTORY, Times())
    again.restore(5, 8, disk)
    assert (again.moves, again.waiting) == (manager.moves, manager.waiting)
    for effect in [*end_first(again)]:
        if isinstance(effect, Persist):
            disk[effect.key] = effect.value
    last = Manager(DIRECTORY, Times())
    last.restore(6, 9, {k: v for k, v in disk.items() if v is not None})
    assert (last.moves, last.waiting) == (again.moves, [])
