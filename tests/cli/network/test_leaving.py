"""What people see while a node is drained."""

from __future__ import annotations

from thalweg.cli.network.leaving import progress_text


def left(*readers: str) -> list[dict[str, str]]:
    return [{"fragment": "78a715415e", "reader": reader} for reader in readers]


def test_a_drain_says_how_many_have_gone() -> None:
    found = {"state": "moving", "total": 3, "left": left("n2", "n3"), "error": None}
    assert progress_text("n1", found) == "1 of 3 fragments have gone from n1"


def test_a_drain_says_whom_it_waits_for() -> None:
    found = {"state": "waiting", "total": 3, "left": left("n2", "n3"), "error": None}
    told = progress_text("n1", found)
    assert "n2 goes over with 78a715415e and 1 more when its streams have gone on" in told
