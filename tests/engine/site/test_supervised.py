import threading

import polars as pl
import pytest
from tests.engine.site.conftest import rows, said

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.kernels.registry import KERNELS
from thalweg.engine.site import Site
from thalweg.engine.sources.feed import Feed
from thalweg.engine.supervised import SupervisedThread


def panic() -> None:
    pl.Series([2**31 - 1], dtype=pl.Int32).cast(pl.Date).to_list()


@pytest.mark.parametrize(
    "error", [ValueError, SystemExit, KeyboardInterrupt, pl.exceptions.PanicException]
)
def test_work_that_fails_in_whatever_way_is_begun_again(error: type[BaseException]) -> None:
    failures: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        if len(failures) < 3:
            raise error("no")
        done.set()

    def failed(cause: BaseException) -> float:
        failures.append(cause)
        return 0.0

    thread = SupervisedThread("t", work, stop=threading.Event(), failed=failed)
    thread.start()
    assert done.wait(30)
    thread.join()
    assert [type(f) for f in failures] == [error] * 3


def test_a_stop_ends_the_wait_for_another_attempt() -> None:
    stop, failed = threading.Event(), threading.Event()

    def fail() -> None:
        raise ValueError

    def note(_: BaseException) -> float:
        failed.set()
        return 3600.0

    thread = SupervisedThread("t", fail, stop=stop, failed=note)
    thread.start()
    assert failed.wait(30)
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


def test_a_panic_in_a_source_is_told_and_the_source_opened_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.engine.site.feeds._SOURCE_RETRIES_S", (0.01,))
    site.execute("CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE QUERY q AS SELECT a FROM S")
    attempts: list[str | None] = []
    done = threading.Event()

    class Source:
        def run(self, feed: Feed) -> None:
            attempts.append(site.streams()[0].error)
            if len(attempts) < 3:
                panic()
            feed.push(rows((1, 1), (2, 2)))
            done.set()
            feed.wait(30)

    site.feed("S", Source())
    assert done.wait(30)
    site.settle()
    assert attempts == [None, *["PanicException: out-of-range date"] * 2]
    assert said(site, "q") == [(1, "+", 1)]
    assert site.health().problems == []


def test_a_panic_in_a_query_parks_it_and_no_other(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.engine.site.ticker._LONGEST_PAUSE_S", 0.01)
    monkeypatch.setitem(KERNELS, ph.Distinct, lambda *_: panic())  # type: ignore[arg-type]
    site.execute(
        "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts;"
        "CREATE QUERY good AS SELECT a FROM S;"
        "CREATE QUERY bad AS SELECT DISTINCT a FROM S [Range 5]"
    )
    site.push("S", rows((1, 1), (2, 2)))
    site.settle()
    assert said(site, "good") == [(1, "+", 1)]
    assert [q.name for q in site.queries() if q.state == "parked"] == ["bad"]


def test_whatever_fails_beside_the_tick_is_told_by_health(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.engine.site.ticker._LONGEST_PAUSE_S", 0.01)
    committed, seen = site.ticker._committed, threading.Event()
    is_broken = [True]

    def tell(done: object) -> None:
        if is_broken[0]:
            seen.set()
            raise MemoryError("no room")
        committed(done)  # type: ignore[arg-type]

    monkeypatch.setattr(site.ticker, "_committed", tell)
    site.execute("CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE QUERY q AS SELECT a FROM S")
    site.push("S", rows((1, 1), (2, 2)))
    assert seen.wait(30)
    is_broken[0] = False
    site.push("S", rows((3, 3)))
    site.settle()
    assert site.health().ok
    assert said(site, "q") == [(1, "+", 1), (2, "+", 2)]
