"""The live driver: steps, timers, durability, other threads, and protocols that fail."""

import sqlite3
import threading
import time
from collections import Counter

import pytest
from tests.overlay.echo import Echo
from tests.runtime.driver.local_post import Exchange
from tests.runtime.waiting import eventually

from thalweg.overlay.protocol import Call, Deliver, Init, Message, Persist, Receive, Send, SetTimer
from thalweg.overlay.stack import Stack
from thalweg.runtime.driver import Driver, DriverClosed, DriverError
from thalweg.runtime.driver.store import Store


class Word(Message, frozen=True):
    text: str


class Notebook:
    """Writes down what it is told, and tells `b` each time; some words make it stumble."""

    name = "notebook"
    messages = (Word,)
    listens_to = ()

    def __init__(self):
        self.words = []
        self.seeds = []

    def step(self, now_us, event):
        match event:
            case Init(_, seed, persisted):
                self.seeds.append(seed)
                self.words = [persisted[k].decode() for k in sorted(persisted)]
            case Call("stumble"):
                self.words.append("half done")
                raise RuntimeError("a bug")
            case Call(("not an effect",)):
                return [Persist("zzz", b"of a failed step"), "nonsense"]
            case Call(str(text)) | Receive(_, Word(text)):
                if text == "poison":
                    raise RuntimeError("poisoned")
                self.words.append(text)
                key = f"{len(self.words):04d}"
                return [
                    Persist(key, text.encode()),
                    Send("b:1", Word(text)),
                    Deliver(text),
                ]
        return []


@pytest.fixture
def exchange():
    return Exchange()


@pytest.fixture
def open_driver(exchange, tmp_path):
    opened = []

    def open_one(address="a:1", build=lambda: Stack([Echo()]), start=True):
        folder = tmp_path / address.replace(":", "-")
        driver = Driver(build, post=exchange.post(address), folder=folder, seed=1)
        opened.append(driver)
        if start:
            driver.start()
        return driver

    yield open_one
    for driver in opened:
        driver.close()


def notebook(open_driver, **options):
    return open_driver(build=lambda: Stack([Notebook()]), **options)


def words(driver):
    return driver.read(lambda stack: list(stack["notebook"].words))


def test_messages_go_to_and_fro(open_driver):
    a, _b = open_driver("a:1"), open_driver("b:1")
    heard = []
    a.on("echo", heard.append)
    for _ in range(3):
        a.call("echo", "b:1").result(5)
    eventually(lambda: len(heard) == 3)
    assert a.read(lambda stack: stack["echo"].pongs) == 3


def test_a_message_to_oneself_arrives(open_driver):
    a = open_driver("a:1")
    a.call("echo", "a:1").result(5)
    eventually(lambda: a.read(lambda stack: stack["echo"].pongs) == 1)


def test_timers_fire_in_time_and_in_order_and_can_be_replaced_and_cancelled(open_driver):
    a = open_driver("a:1", start=False)
    heard = []
    a.on("echo", heard.append)
    a.start()
    began_us = a.read(lambda _: None) or time.monotonic_ns() // 1000
    a.call("echo", ("timer", "late", 10_000_000))
    a.call("echo", ("timer", "second", 60_000))
    a.call("echo", ("timer", "first", 30_000))
    a.call("echo", ("timer", "late", 90_000))
    a.call("echo", ("timer", "never", 40_000))
    a.call("echo", ("cancel", "never"))
    eventually(lambda: len(heard) == 3)
    assert [key for _, key, _ in heard] == ["first", "second", "late"]
    assert time.monotonic_ns() // 1000 - began_us >= 90_000
    assert heard[2][2] - heard[0][2] >= 50_000


def test_an_answer_is_what_the_step_delivered(open_driver):
    driver = notebook(open_driver)
    assert driver.call("notebook", "hello").result(5) == ("hello",)


def test_what_was_persisted_is_there_in_the_next_life(open_driver):
    driver = notebook(open_driver)
    driver.call("notebook", "one").result(5)
    driver.call("notebook", "two").result(5)
    driver.close()
    again = notebook(open_driver)
    assert words(again) == ["one", "two"]
    assert again.health().lives == 2


def test_each_life_has_random_numbers_of_its_own(open_driver):
    seeds = set()
    for _ in range(3):
        driver = notebook(open_driver)
        seeds |= set(driver.read(lambda stack: stack["notebook"].seeds))
        driver.close()
    assert len(seeds) == 3


def test_nothing_is_sent_delivered_or_answered_before_it_is_durable(open_driver, monkeypatch):
    driver = notebook(open_driver, start=False)
    on_disk, too_early = set(), []
    commit = Store.commit

    def slow_commit(store, writes, clock_us, **options):
        time.sleep(0.01)
        commit(store, writes, clock_us, **options)
        on_disk.update(value.decode() for _, _, value in writes)

    def look(_to, _protocol, message):
        if message.text not in on_disk:
            too_early.append(message.text)

    monkeypatch.setattr(Store, "commit", slow_commit)
    driver._post.on_send = look
    driver.on("notebook", lambda text: text in on_disk or too_early.append(text))
    driver.start()
    asked = {str(i): driver.call("notebook", str(i)) for i in range(300)}
    for text, answer in asked.items():
        answer.add_done_callback(lambda _, t=text: t in on_disk or too_early.append(t))
    for answer in asked.values():
        answer.result(10)
    assert len(on_disk) == 300
    assert too_early == []


def test_steps_that_queue_up_share_commits(open_driver, monkeypatch):
    sizes, commit = [], Store.commit

    def slow_commit(store, writes, clock_us, **options):
        time.sleep(0.02)
        sizes.append(len(writes))
        commit(store, writes, clock_us, **options)

    monkeypatch.setattr(Store, "commit", slow_commit)
    driver = notebook(open_driver)
    answers = [driver.call("notebook", str(i)) for i in range(1_000)]
    for answer in answers:
        answer.result(20)
    assert sum(sizes) == 1_000
    assert len(sizes) < 100


def test_a_full_disk_silences_the_node_until_it_has_room(open_driver, exchange, monkeypatch):
    driver = notebook(open_driver)
    driver.call("notebook", "before").result(5)
    commit, full = Store.commit, threading.Event()
    full.set()

    def failing_commit(store, writes, clock_us, **options):
        if full.is_set():
            raise sqlite3.OperationalError("database or disk is full")
        commit(store, writes, clock_us, **options)

    monkeypatch.setattr(Store, "commit", failing_commit)
    answer = driver.call("notebook", "meanwhile")
    eventually(lambda: driver.health().disk == "database or disk is full")
    assert not answer.done()
    assert not driver.health().is_up
    assert exchange.sent["Word"] == 1
    full.clear()
    assert answer.result(5) == ("meanwhile",)
    assert driver.health().is_up
    assert words(driver) == ["before", "meanwhile"]


def test_closing_ends_the_wait_for_a_disk(open_driver, monkeypatch):
    driver = notebook(open_driver)
    driver.read(lambda _: None)

    def failing_commit(*_, **__):
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(Store, "commit", failing_commit)
    answer = driver.call("notebook", "lost")
    eventually(lambda: driver.health().disk)
    driver.close()
    with pytest.raises(DriverClosed):
        answer.result(5)


def test_a_step_that_raises_restarts_the_stack_from_what_it_persisted(open_driver):
    driver = notebook(open_driver)
    driver.call("notebook", "one").result(5)
    with pytest.raises(RuntimeError, match="a bug"):
        driver.call("notebook", "stumble").result(5)
    assert words(driver) == ["one"]  # not what the failed step left half done
    assert driver.call("notebook", "two").result(5) == ("two",)
    health = driver.health()
    assert (health.failures, health.lives, health.is_up) == (1, 2, True)
    assert health.last_failure == "RuntimeError: a bug"


def test_a_failed_step_takes_none_of_its_effects_and_no_others_with_it(open_driver, exchange):
    driver = notebook(open_driver, start=False)
    answers = [
        driver.call("notebook", w) for w in ("one", ("not an effect",), "two", "stumble", "three")
    ]
    driver.start()
    assert [a.result(5) for a in answers[::2]] == [("one",), ("two",), ("three",)]
    for failed in answers[1::2]:
        assert failed.exception(5) is not None
    assert words(driver) == ["one", "two", "three"]
    assert exchange.sent["Word"] == 3


def test_a_poisoned_message_that_comes_again_and_again_slows_the_restarts(open_driver, exchange):
    driver = notebook(open_driver)
    driver.call("notebook", "one").result(5)
    end_s = time.monotonic() + 0.6
    while time.monotonic() < end_s:
        exchange.receivers["a:1"]("x:1", "notebook", Word("poison"))
        time.sleep(0.005)
    assert 2 <= driver.health().failures <= 5  # at once, then after 0.1, 0.2, 0.4 s


def test_what_fails_in_the_application_is_its_own_affair(open_driver):
    driver = notebook(open_driver, start=False)
    heard = []

    def stumble(value):
        heard.append(value)
        raise RuntimeError("the application's bug")

    driver.on("notebook", stumble)
    driver.start()
    driver.call("notebook", "one").result(5)
    driver.call("notebook", "two").result(5)
    eventually(lambda: heard == ["one", "two"])
    with pytest.raises(ZeroDivisionError):
        driver.read(lambda _: 1 / 0)
    assert driver.health().failures == 0


def test_an_application_that_takes_its_time_holds_up_no_protocol(open_driver):
    a, _b = open_driver("a:1"), open_driver("b:1")
    slow = threading.Event()
    a.on("echo", lambda _: slow.wait(10))
    for _ in range(20):
        a.call("echo", "b:1")
    eventually(lambda: a.read(lambda stack: stack["echo"].pongs) == 20)
    assert a.health().undelivered > 10
    slow.set()


def test_many_threads_call_and_read(open_driver):
    driver = notebook(open_driver)
    torn = []

    def work(number):
        for i in range(50):
            driver.call("notebook", f"{number}-{i}").result(10)
            seen = words(driver)
            if f"{number}-{i}" not in seen:
                torn.append((number, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torn == []
    assert Counter(words(driver)) == Counter(f"{n}-{i}" for n in range(6) for i in range(50))


def test_a_wrong_name_is_said(open_driver):
    driver = notebook(open_driver)
    with pytest.raises(DriverError, match="runs no protocol 'chord', only notebook"):
        driver.call("chord", "x").result(5)


def test_a_closed_driver_says_so(open_driver):
    driver = notebook(open_driver)
    driver.close()
    with pytest.raises(DriverClosed):
        driver.call("notebook", "x")
    with pytest.raises(DriverClosed):
        driver.read(lambda _: None)


def test_leaving_says_goodbye_first(open_driver, tmp_path):
    class Polite(Echo):
        def step(self, now_us, event):
            if type(event).__name__ == "Leave":
                return [Persist("left", b""), Send("b:1", self.messages[0](99))]
            return super().step(now_us, event)

    b = open_driver("b:1")
    a = open_driver("a:1", build=lambda: Stack([Polite()]))
    a.call("echo", ("timer", "t", 0))
    a.leave()
    eventually(lambda: b.read(lambda stack: len(stack["echo"].heard_at_us)) == 1)
    store = Store(tmp_path / "a-1", "a:1")
    assert store.load()["echo"] == {"left": b""}
    store.close()
    with pytest.raises(DriverClosed):
        a.call("echo", "b:1")


def test_the_clock_does_not_run_backwards_over_restarts(open_driver, tmp_path):
    store = Store(tmp_path / "a-1", "a:1")
    ahead_us = time.time_ns() // 1000 + 3_600_000_000  # the wall clock was an hour ahead
    store.commit([], ahead_us)
    store.close()

    class Timed:
        name, messages, listens_to = "timed", (), ()

        def step(self, now_us, event):
            self.now_us = now_us
            return [SetTimer("t", 1_000)]

    driver = open_driver(build=lambda: Stack([Timed()]))
    assert driver.read(lambda stack: stack["timed"].now_us) >= ahead_us
    eventually(lambda: driver.health().steps > 5)


def test_messages_beyond_the_limit_are_dropped_and_counted(open_driver, monkeypatch):
    monkeypatch.setattr("thalweg.runtime.driver.driver.MOST_MAIL", 10)
    driver = notebook(open_driver, start=False)
    for i in range(25):
        driver.receive("x:1", "notebook", Word(str(i)))
    driver.start()
    assert words(driver) == [str(i) for i in range(10)]
    assert driver.health().dropped == 15
