"""The file of what protocols persist."""

import sqlite3

import pytest

from thalweg.runtime.driver.store import FILE, Store, StoreError


def test_what_was_committed_is_there_again(tmp_path):
    store = Store(tmp_path, "a:1")
    store.commit([("chord", "x", b"1"), ("chord", "y", b"2"), ("gossip", "x", b"3")], 10)
    store.commit([("chord", "y", None), ("gossip", "x", b"4")], 20)
    store.close()
    again = Store(tmp_path, "a:1")
    assert again.load() == {"chord": {"x": b"1"}, "gossip": {"x": b"4"}}
    assert again.clock_us == 20
    again.close()


def test_lives_are_counted_over_restarts(tmp_path):
    for life in (1, 2, 3):
        store = Store(tmp_path, "a:1")
        assert store.begin_life(0) == life
        store.close()


def test_a_commit_that_fails_leaves_nothing(tmp_path):
    store = Store(tmp_path, "a:1")
    with pytest.raises(UnicodeEncodeError):
        store.commit([("chord", "x", b"1"), ("chord", "\udcff", b"2")], 10)
    assert store.load() == {}
    store.commit([("chord", "x", b"1")], 10)
    assert store.load() == {"chord": {"x": b"1"}}
    store.close()


def test_another_node_does_not_take_over_a_folder(tmp_path):
    Store(tmp_path, "a:1").close()
    with pytest.raises(StoreError, match="belongs to the node a:1, not to b:1"):
        Store(tmp_path, "b:1")


def test_a_folder_in_use_is_refused(tmp_path):
    store = Store(tmp_path, "a:1")
    with pytest.raises(StoreError, match="another process uses this folder"):
        Store(tmp_path, "a:1")
    store.close()
    Store(tmp_path, "a:1").close()


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / FILE).write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match=r"protocols\.db: the file is damaged"):
        Store(tmp_path, "a:1")


def test_a_later_format_is_refused(tmp_path):
    Store(tmp_path, "a:1").close()
    db = sqlite3.connect(tmp_path / FILE)
    db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(StoreError, match="has format 99"):
        Store(tmp_path, "a:1")
