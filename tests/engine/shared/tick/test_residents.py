"""Resident tasks without Spark: here they are threads of this process, over the same sockets."""

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from thalweg.engine.shared.tick import resident_task, residents
from thalweg.engine.shared.tick.resident_channel import Channel, Gone, Hello, Kind, Message
from thalweg.engine.shared.tick.resident_task import Post, reside
from thalweg.engine.shared.tick.residents import NoResidents, Residents, TaskFailed
from thalweg.engine.site.parking import is_environment_error, last_line


class Here:
    """Residents in this process, and what became of them."""

    def __init__(self, launch: Callable[[Post], None] | None = None, *, slots: int = 4) -> None:
        self.posts: list[Post] = []
        self.ended = 0
        self.slots = slots
        self._launch = launch or (lambda post: reside(post, 0))
        self.residents = Residents(self._run, lambda: self.slots, idle_s=30)

    def _run(self, post: Post) -> None:
        self.posts.append(post)
        try:
            self._launch(post)
        finally:
            self.ended += 1


@pytest.fixture(autouse=True)
def _echo(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick's report is its share and what was sent."""
    monkeypatch.setattr(
        resident_task, "run_share", lambda packed, share: b"%d:%s" % (share, packed)
    )
    monkeypatch.setattr(resident_task, "let_go", lambda packed: None)
    monkeypatch.setattr(residents, "_FIRST_PAUSE_S", 0.05)


@pytest.fixture
def opened() -> Iterator[Callable[..., Here]]:
    all_: list[Here] = []

    def open_(*args, **options) -> Here:
        all_.append(Here(*args, **options))
        return all_[-1]

    yield open_
    for here in all_:
        here.residents.close()


def until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it has not come to pass"
        time.sleep(0.005)


def connected(post: Post, attempt: int) -> Channel:
    channel = Channel(socket.create_connection(post.address, 5))
    channel.introduce(post.secret, Hello(post.number, attempt, 1))
    return channel


def test_tick_after_tick_goes_to_the_same_residents(opened):
    here = opened()
    assert [here.residents.run(b"a", 1) for _ in range(5)] == [[b"0:a"]] * 5
    assert here.residents.run(b"b" * 1_000_000, 3) == [
        b"%d:%s" % (n, b"b" * 10**6) for n in (0, 1, 2)
    ]
    assert here.residents.run(b"c", 1) == [b"0:c"]
    assert len(here.posts) == 3
    assert here.residents.ticks == 7


def test_one_slot_is_always_left_to_others(opened):
    here = opened(slots=2)
    assert here.residents.run(b"a", 1) == [b"0:a"]
    with pytest.raises(NoResidents, match="2 of at most 1"):
        here.residents.run(b"a", 2)
    until(lambda: here.ended == 1)  # a job wants its slot
    alone = opened(slots=1)
    with pytest.raises(NoResidents):
        alone.residents.run(b"a", 1)
    assert not alone.posts


def test_residents_go_where_slots_have_gone(opened, monkeypatch):
    monkeypatch.setattr(residents, "_LOOK_AT_SLOTS_S", 0.0)
    here = opened(slots=4)
    here.residents.run(b"a", 3)
    here.slots = 2
    assert here.residents.run(b"a", 1) == [b"0:a"]
    until(lambda: here.ended == 3)
    assert len(here.residents.processes()) == 1


def test_a_resident_with_nothing_to_do_gives_its_slot_back(opened):
    here = opened()
    here.residents._idle_s = 0.1
    here.residents.run(b"a", 1)
    until(lambda: here.ended == 1)
    assert here.residents.run(b"b", 1) == [b"0:b"]
    assert len(here.posts) == 2


def test_a_failed_tick_says_why_and_its_resident_stays(opened, monkeypatch):
    here = opened()

    def fail(packed: bytes, share: int) -> bytes:
        if packed == b"bad":
            raise ZeroDivisionError("of the query")
        raise OSError("disk")

    monkeypatch.setattr(resident_task, "run_share", fail)
    with pytest.raises(TaskFailed) as failed:
        here.residents.run(b"bad", 1)
    assert last_line(failed.value) == "ZeroDivisionError: of the query"
    assert not is_environment_error(failed.value)
    with pytest.raises(TaskFailed) as failed:
        here.residents.run(b"disk", 1)
    assert is_environment_error(failed.value)
    assert len(here.posts) == 1


def test_a_resident_that_dies_in_the_middle_of_a_tick_is_not_waited_for(opened):
    dying = [True]

    def launch(post: Post) -> None:
        if not dying:
            reside(post, 0)
            return
        channel = connected(post, 0)
        channel.receive()
        channel.close()
        dying.clear()

    here = opened(launch)
    with pytest.raises(NoResidents, match="closed"):
        here.residents.run(b"a", 1)
    with pytest.raises(NoResidents, match="lost a moment ago"):
        here.residents.run(b"a", 1)
    until(lambda: time.monotonic() > here.residents._not_before)
    assert here.residents.run(b"b", 1) == [b"0:b"]


def test_a_job_that_ends_wakes_the_tick_that_waits_for_its_resident(opened):
    """As when a machine is gone, and Spark has noticed: its channel says nothing."""
    left: list[Channel] = []

    def launch(post: Post) -> None:
        left.append(connected(post, 0))
        left[0].receive()

    with pytest.raises(NoResidents):
        opened(launch).residents.run(b"a", 1)


def test_answers_to_other_epochs_are_nobodys(opened):
    def launch(post: Post) -> None:
        channel = connected(post, 0)
        while (message := channel.receive()) is not None:
            channel.send(Message(Kind.DONE, message.epoch - 1, b"of an earlier tick"))
            channel.send(Message(Kind.FAILED, message.epoch + 1, b"of nobody"))
            channel.send(Message(Kind.DONE, message.epoch, b"right"))

    here = opened(launch)
    assert here.residents.run(b"a", 1) == [b"right"]
    assert here.residents.run(b"b", 1) == [b"right"]


def test_the_newest_attempt_at_a_resident_counts(opened):
    attempts: list[Channel] = []

    def launch(post: Post) -> None:
        attempts.append(connected(post, 0))
        message = attempts[0].receive()
        assert message is not None
        attempts.append(connected(post, 1))  # Spark tries again: the first one is lost
        with pytest.raises(Gone):
            attempts[0].receive()
        late = connected(post, 0)  # and shows up after all
        with pytest.raises(Gone):
            late.receive()

    here = opened(launch)
    with pytest.raises(NoResidents):
        here.residents.run(b"a", 1)
    until(lambda: here.ended == 1)


def test_a_retry_between_two_ticks_takes_the_place(opened):
    done = threading.Event()

    def launch(post: Post) -> None:
        first = connected(post, 0)
        message = first.receive()
        assert message is not None
        second = threading.Thread(target=reside, args=(post, 1))
        first.send(Message(Kind.DONE, message.epoch, b"first"))
        second.start()
        done.set()
        second.join()

    here = opened(launch)
    assert here.residents.run(b"a", 1) == [b"first"]
    done.wait(5)
    until(lambda: here.residents._seats[0].attempt == 1)
    assert here.residents.run(b"b", 1) == [b"0:b"]
    assert len(here.posts) == 1


def test_a_resident_that_cannot_come_is_not_waited_for(opened, monkeypatch, caplog):
    def launch(post: Post) -> None:
        raise OSError("no route to the driver")

    monkeypatch.setattr(residents, "START_S", 60)
    here = opened(launch)
    began = time.monotonic()
    with pytest.raises(NoResidents, match="0 of 1 have reported"):
        here.residents.run(b"a", 1)
    assert time.monotonic() - began < 30
    until(lambda: "no route to the driver" in caplog.text)
    with pytest.raises(NoResidents, match="lost a moment ago"):
        here.residents.run(b"a", 1)


def test_a_resident_that_takes_its_time_is_there_for_a_later_tick(opened, monkeypatch):
    monkeypatch.setattr(residents, "START_S", 0.05)
    loaded = threading.Event()

    def launch(post: Post) -> None:
        loaded.wait(5)
        reside(post, 0)

    here = opened(launch)
    for _ in range(3):
        with pytest.raises(NoResidents, match="0 of 1 have reported"):
            here.residents.run(b"a", 1)
    loaded.set()
    until(lambda: bool(here.residents.processes()))
    assert here.residents.run(b"a", 1) == [b"0:a"]
    assert len(here.posts) == 1


def test_strangers_are_turned_away_and_hold_up_nobody(opened):
    here = opened()
    here.residents.run(b"a", 1)
    post = here.posts[0]
    silent = socket.create_connection(post.address, 5)
    guessing = Channel(socket.create_connection(post.address, 5))
    with pytest.raises(Gone):
        guessing.introduce(b"a guess", Hello(post.number, 9, 1))
    garbage = socket.create_connection(post.address, 5)
    garbage.sendall(b"GET / HTTP/1.1\r\n\r\n" + b"x" * 500)
    here.residents.release()
    assert here.residents.run(b"b", 1) == [b"0:b"]
    for stranger in (silent, garbage):
        stranger.close()


def test_a_task_does_not_serve_a_driver_without_the_secret():
    """Who answers at a driver's old address must not make it run anything."""
    with socket.create_server(("127.0.0.1", 0)) as imposter:
        task = threading.Thread(
            target=reside, args=(Post(imposter.getsockname(), b"secret", 0, 5), 0)
        )
        task.start()
        there, _ = imposter.accept()
        with there:
            there.sendall(b"n" * 32)
            there.recv(200)
            there.sendall(b"p" * 32)
            task.join(5)
            assert not task.is_alive()


def test_two_engines_do_not_wait_for_each_other(opened, monkeypatch):
    here, inside, go_on = opened(), threading.Event(), threading.Event()

    def wait(packed: bytes, share: int) -> bytes:
        inside.set()
        go_on.wait(5)
        return packed

    monkeypatch.setattr(resident_task, "run_share", wait)
    found: list[list[bytes]] = []
    first = threading.Thread(target=lambda: found.append(here.residents.run(b"a", 1)))
    first.start()
    inside.wait(5)
    with pytest.raises(NoResidents, match="somebody else's"):
        here.residents.run(b"b", 1)
    go_on.set()
    first.join(5)
    assert found == [[b"a"]]
