import itertools
import threading
import time

import polars as pl
import pytest
from tests.engine.site.conftest import OpenSite, rows, said

from thalweg.engine.site import Busy, Site

S = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts;"


def test_a_silent_stream_stalls_nobody(site: Site) -> None:
    site.execute(
        "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts IDLE 100 MILLISECOND;"
        "CREATE STREAM T (a INTEGER) TIMESTAMP BY ts;"
        "CREATE QUERY q AS SELECT S.a FROM S [Range 10], T [Range 10] WHERE S.a = T.a"
    )
    site.push("S", rows((1, 1)))
    site.push("T", rows((2, 1), (30, 2)))
    deadline = time.monotonic() + 120
    while len(said(site, "q")) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert said(site, "q") == [(2, "+", 1), (12, "-", 1)]
    assert {s.name: s.state for s in site.streams()} == {"S": "idle", "T": "flowing"}
    assert site.push("S", rows((3, 1))).late == 1


def test_a_stream_without_idle_is_waited_for(site: Site) -> None:
    site.execute(S + "CREATE STREAM T (a INTEGER) TIMESTAMP BY ts; SELECT S.a FROM S, T")
    site.push("S", rows((1, 1), (30, 2)))
    time.sleep(0.3)
    assert said(site, "q1") == []


def test_batches_of_many_threads_all_land(site: Site) -> None:
    site.execute(
        "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts LATENESS 1000; SELECT COUNT(*) AS n FROM S"
    )

    def push(number: int) -> None:
        for i in range(10):
            site.push("S", rows((number * 10 + i, 1)), batch_id=f"{number}-{i}")

    threads = [threading.Thread(target=push, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    site.finish("S")
    site.settle()
    assert said(site, "q1")[-1][2:] == (80,)


def test_a_repeated_batch_counts_once(site: Site) -> None:
    site.execute(S + "SELECT COUNT(*) AS n FROM S")
    assert not site.push("S", rows((1, 1)), batch_id="x").repeated
    assert site.push("S", rows((1, 1)), batch_id="x").repeated
    site.finish("S")
    site.settle()
    assert said(site, "q1")[-1][2:] == (1,)


def test_who_pushes_faster_than_the_engine_is_held_back(
    open_here: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = open_here(largest_backlog=10)
    site.execute("CREATE STREAM S (a INTEGER) TIMESTAMP BY ts IDLE 1 MILLISECOND; SELECT a FROM S")
    site.settle()
    run, goes = site.engine.executor.run, threading.Event()

    def held(*args: object) -> list[bytes]:
        goes.wait(20)
        return run(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(site.engine.executor, "run", held)
    batch = pl.DataFrame({"ts": range(20), "a": range(20)})
    site.push("S", batch)
    with pytest.raises(Busy, match="20 tuples wait"):
        site.push("S", batch, patience_s=0.05)
    pushed = threading.Thread(target=lambda: site.push("S", rows((50, 50))))
    pushed.start()
    time.sleep(0.1)
    assert pushed.is_alive()
    # Who waits for room is not silent, whatever IDLE says.
    feed = site.feeds.find("S")
    assert feed is not None
    assert not feed.is_idle()
    goes.set()
    pushed.join(10)
    assert not pushed.is_alive()
    site.settle()
    assert len(said(site, "q1")) == 21


def test_heartbeats_move_time(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 2]")
    site.push("S", rows((1, 1)))
    site.heartbeat("S", 10)
    site.settle()
    assert said(site, "q") == [(1, "+", 1), (4, "-", 1)]


def test_a_clock_that_jumps_changes_nothing(
    open_here: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Days forth and back: results follow the tuples' time, and silence is not measured by it."""
    script = """
    CREATE STREAM S (a INTEGER) TIMESTAMP BY ts IDLE 1 HOUR;
    CREATE STREAM T (a INTEGER) TIMESTAMP BY ts IDLE 1 HOUR;
    CREATE TABLE K (a INTEGER, PRIMARY KEY (a));
    CREATE QUERY q AS SELECT S.a FROM S [Range 5], T [Range 5], K WHERE S.a = T.a AND K.a = S.a;
    """
    found = []
    for jumps in ([0.0], [0.0, 86_400.0, -86_400.0, 3.2e9, -1.0]):
        real, left = time.time, itertools.cycle(jumps)
        with monkeypatch.context() as patched:
            patched.setattr(time, "time", lambda left=left, real=real: real() + next(left))
            site = open_here(f"data{len(found)}")
            site.execute(script)
            for ts in range(6):
                site.execute(f"INSERT INTO K VALUES ({ts})")
                for stream in ("S", "T") if ts != 3 else ("S",):
                    site.push(stream, rows((ts, ts)))
                site.settle()
            found.append((said(site, "q"), [s.late for s in site.streams()]))
    assert found[0] == found[1]
    assert found[0][0]
