"""What the book has said is said again, until somebody has changed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from thalweg.engine.shared.state.remembered import Remembered
from thalweg.engine.shared.state.store import Store


def test_an_answer_is_kept_until_something_changes() -> None:
    remembered, asked = Remembered(), []

    def answer() -> int:
        asked.append(1)
        return len(asked)

    assert [remembered.get("q", answer) for _ in range(3)] == [1, 1, 1]
    remembered.changed()
    assert remembered.get("q", answer) == 2


def test_what_changes_while_it_is_looked_up_is_not_kept() -> None:
    remembered = Remembered()

    def overtaken() -> str:
        remembered.changed()
        return "old"

    assert remembered.get("q", overtaken) == "old"
    assert remembered.get("q", lambda: "new") == "new"


def test_what_was_seen_inside_a_transaction_that_was_taken_back_is_forgotten(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    store.write_frontiers({"f": 1})
    store.outputs.add(1, {"f": (0, 1)}, [])
    store.runs.join([("q", 1, "g")])
    with pytest.raises(ZeroDivisionError):
        _change_and_fail(store)
    assert store.frontier("f") == 1
    assert store.outputs.oldest() == (1, {"f": (0, 1)})
    assert store.runs.memberships("q") == [(1, "g")]
    store.close()


def test_results_come_and_go_for_those_who_have_asked(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.outputs.oldest() is None
    store.outputs.add(3, {"f": (0, 1)}, [])
    assert store.outputs.oldest() == (3, {"f": (0, 1)})
    store.outputs.expire(3)
    assert store.outputs.oldest() is None
    store.close()


def _change_and_fail(store: Store) -> None:
    with store.transaction():
        store.write_frontiers({"f": 2})
        store.outputs.expire(1)
        store.runs.join([("q", 2, "h")])
        assert store.frontier("f") == 2
        assert store.outputs.oldest() is None
        assert store.runs.memberships("q") == [(1, "g"), (2, "h")]
        raise ZeroDivisionError
