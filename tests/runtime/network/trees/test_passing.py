"""How long rows wait at a node before it can pass them on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from thalweg.runtime.network.trees import passing
from thalweg.runtime.network.trees.passing import Landed, Passing


class Site:
    def __init__(self) -> None:
        self.reached = 0
        self.streams = {"S"}
        marks = lambda names: {n: self.reached for n in names if n in self.streams}  # noqa: E731
        self.engine: Any = SimpleNamespace(watermarks=marks)
        self.now = 0.0

    def listen(self, listener: Any) -> None:
        self.ticked = listener


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site()
    monkeypatch.setattr(passing.time, "monotonic", lambda: made.now)
    return made


def test_rows_wait_from_landing_to_the_tick_that_takes_them(site: Site) -> None:
    told: list[tuple[str, Landed, float]] = []
    waits = Passing(site, lambda *given: told.append(given))  # type: ignore[arg-type]
    assert waits.hop_s() == 0.0
    waits.landed("S", 3, 5)
    site.now, site.reached = 1.0, 4
    site.ticked()  # it has taken less than that
    assert told == []
    waits.landed("S", None, 7)
    site.now, site.reached = 3.0, 7
    site.ticked()
    assert told == [("S", Landed(3, 5, 0.0), 3.0), ("S", Landed(None, 7, 1.0), 3.0)]
    assert waits.hop_s() == pytest.approx(3.0)  # of rows; a promise is none


def test_what_was_long_ago_counts_only_if_nothing_is_newer(site: Site) -> None:
    waits = Passing(site)  # type: ignore[arg-type]
    for landed, taken in ((0.0, 5.0), (50.0, 50.5)):
        site.now = landed
        waits.landed("S", 1, 1)
        site.now, site.reached = taken, 1
        site.ticked()
    assert waits.hop_s() == pytest.approx(0.5)
    site.now = 100.0
    assert waits.hop_s() == pytest.approx(0.5)
    site.now = 500.0
    assert waits.hop_s() == 0.0


def test_a_stream_that_is_gone_is_forgotten(site: Site) -> None:
    waits = Passing(site)  # type: ignore[arg-type]
    waits.landed("S", 1, 2)
    site.streams.clear()
    site.ticked()
    site.streams.add("S")
    site.reached = 9
    site.ticked()
    assert waits.hop_s() == 0.0
