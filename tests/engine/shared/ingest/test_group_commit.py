import threading
import time
from collections.abc import Sequence

import pytest

from thalweg.engine.shared.ingest.group_commit import GroupCommit


class Written:
    """What was written, group by group; the first group waits until it may go on."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.go_on = threading.Event()

    def __call__(self, group: Sequence[int]) -> None:
        if not self.groups:
            self.groups.append(list(group))
            assert self.go_on.wait(10)
            return
        self.groups.append(list(group))
        if any(item < 0 for item in group):
            raise OSError(f"can't write {group}")


def submitted(commits: GroupCommit[int], item: int, errors: list[str]) -> threading.Thread:
    def run() -> None:
        try:
            commits.submit(item)
        except OSError as error:
            errors.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def until_waiting(commits: GroupCommit[int], count: int) -> None:
    for _ in range(1000):
        if len(commits._waiting) == count:
            return
        time.sleep(0.01)
    pytest.fail("nobody waits")


def test_who_comes_while_a_group_is_written_shares_the_next() -> None:
    written = Written()
    commits, errors = GroupCommit(written), list[str]()
    threads = [submitted(commits, 0, errors)]
    while not written.groups:
        time.sleep(0.01)
    for item in range(1, 6):
        threads.append(submitted(commits, item, errors))
        until_waiting(commits, item)
    written.go_on.set()
    for thread in threads:
        thread.join(10)
    assert written.groups == [[0], [1, 2, 3, 4, 5]]
    assert not errors


def test_one_that_can_not_be_written_fails_alone() -> None:
    written = Written()
    commits, errors = GroupCommit(written), list[str]()
    threads = [submitted(commits, 0, errors)]
    while not written.groups:
        time.sleep(0.01)
    for place, item in enumerate((1, -2, 3), 1):
        threads.append(submitted(commits, item, errors))
        until_waiting(commits, place)
    written.go_on.set()
    for thread in threads:
        thread.join(10)
    assert written.groups == [[0], [1, -2, 3], [1], [-2], [3]]
    assert errors == ["can't write [-2]"]


def test_who_has_it_exclusively_writes_at_once_and_others_wait() -> None:
    groups: list[list[int]] = []
    commits, errors = GroupCommit[int](lambda group: groups.append(list(group))), list[str]()
    with commits.exclusively():
        thread = submitted(commits, 1, errors)
        until_waiting(commits, 1)
        commits.submit(2)
        assert groups == [[2]]
    thread.join(10)
    assert groups == [[2], [1]]
