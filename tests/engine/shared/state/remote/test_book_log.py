"""The book in an object store: what was committed is there, and one process writes it."""

from __future__ import annotations

import sqlite3
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.engine.failures import Unavailable
from thalweg.engine.shared.state.remote import book_log
from thalweg.engine.shared.state.remote.book_log import BookLog, Fenced
from thalweg.engine.shared.state.remote.objects import Objects


@pytest.fixture
def objects() -> Objects:
    return Objects("memory:///")


@dataclass
class Owner:
    log: BookLog
    db: sqlite3.Connection

    def write(self, value: int) -> None:
        self.db.execute("INSERT INTO t VALUES (?)", (value,))
        self.log.ship(self.db)

    def values(self) -> list[int]:
        return [v for (v,) in self.db.execute("SELECT v FROM t ORDER BY rowid")]


def owner(objects: Objects, folder: Path) -> Owner:
    """Somebody on an empty machine."""
    book = folder / uuid.uuid4().hex / "book.sqlite"
    book.parent.mkdir()
    log = BookLog(objects, book)
    was_there = log.take_over()
    db = sqlite3.connect(book, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA wal_autocheckpoint=0")
    if not was_there:
        db.execute("CREATE TABLE t (v INTEGER)")
    log.ship(db)
    return Owner(log, db)


STEPS = st.lists(st.sampled_from(["write", "roll back", "much", "move"]), max_size=25)


@given(STEPS)
def test_whoever_takes_over_has_what_was_committed(tmp_path_factory, steps):
    folder, objects = tmp_path_factory.mktemp("log"), Objects("memory:///")
    now, expected = owner(objects, folder), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(book_log, "_SNAPSHOT_BYTES", 60_000)
        for number, step in enumerate(steps):
            match step:
                case "write":
                    now.write(number)
                    expected.append(number)
                case "much":  # more than SQLite keeps in memory before it writes
                    now.db.execute("BEGIN IMMEDIATE")
                    many = range(number * 1_000, number * 1_000 + 700)
                    now.db.executemany("INSERT INTO t VALUES (?)", [(v,) for v in many])
                    now.db.execute("COMMIT")
                    now.log.ship(now.db)
                    expected += many
                case "roll back":
                    now.db.execute("PRAGMA cache_size=1")
                    now.db.execute("BEGIN IMMEDIATE")
                    now.db.executemany("INSERT INTO t VALUES (?)", [(-v,) for v in range(2_000)])
                    now.db.execute("ROLLBACK")
                case "move":
                    now = owner(objects, folder)
        assert owner(objects, folder).values() == expected


def test_an_owner_that_was_replaced_writes_nothing_more(objects, tmp_path):
    first = owner(objects, tmp_path)
    first.write(1)
    second = owner(objects, tmp_path)
    with pytest.raises(Fenced, match="another process has taken over"):
        first.write(2)
    with pytest.raises(Fenced):  # and it knows from then on
        first.log.ship(first.db)
    second.write(3)
    assert owner(objects, tmp_path).values() == [1, 3]


def test_a_transaction_that_was_not_shipped_does_not_count(objects, tmp_path):
    first = owner(objects, tmp_path)
    first.write(1)
    first.db.execute("INSERT INTO t VALUES (2)")  # killed here
    assert owner(objects, tmp_path).values() == [1]


def test_a_put_whose_answer_was_lost_is_ones_own(objects, tmp_path, monkeypatch):
    first = owner(objects, tmp_path)
    real, calls = objects.create, []

    def create(key: str, content: bytes) -> None:
        real(key, content)
        calls.append(key)
        if len(calls) == 1:
            raise Unavailable("connection reset")

    monkeypatch.setattr(objects, "create", create)
    monkeypatch.setattr(book_log, "_RETRY_S", 0)
    first.write(1)
    assert len(calls) == 2
    assert owner(objects, tmp_path).values() == [1]


def test_two_that_take_over_at_once_are_not_both_the_owner(objects, tmp_path, monkeypatch):
    owner(objects, tmp_path).write(1)
    real, made = objects.keys, []

    def keys(prefix: str) -> list[str]:
        found = real(prefix)
        if not made and prefix == "log/":  # between the look and the claim
            made.append(None)
            made.append(owner(objects, tmp_path))
            made[1].write(2)
        return found

    monkeypatch.setattr(objects, "keys", keys)
    last = owner(objects, tmp_path)
    assert last.values() == [1, 2]
    with pytest.raises(Fenced):
        made[1].write(3)


def test_snapshots_keep_the_log_short(objects, tmp_path, monkeypatch):
    monkeypatch.setattr(book_log, "_SNAPSHOT_BYTES", 50_000)
    now = owner(objects, tmp_path)
    for value in range(200):
        now.write(value)
    assert len(objects.keys("log/")) < 20
    assert len(objects.keys("book/")) == 1
    assert owner(objects, tmp_path).values() == list(range(200))
