"""When ticks may begin: at once where little happens, an interval apart where much does."""

import polars as pl
import pytest

from thalweg.engine.site.tick_pace import SAVED, TickPace

INTERVAL_S = 0.05


def begins(pace: TickPace, now: float, tick_s: float) -> float:
    """A tick that begins now; gives when the next one may."""
    pace.ticked(now)
    return now + tick_s + pace.pause_s(now + tick_s)


def test_a_lone_tick_is_followed_by_no_pause():
    pace = TickPace(INTERVAL_S)
    for second in range(100):
        assert begins(pace, float(second), 0.02) == pytest.approx(second + 0.02)


def test_under_a_steady_trickle_ticks_are_an_interval_apart():
    pace, now = TickPace(INTERVAL_S), 0.0
    starts = []
    for _ in range(1_000):
        starts.append(now)
        now = begins(pace, now, 0.01)
    seconds = starts[-1]
    assert len(starts) <= seconds / INTERVAL_S + SAVED + 1
    assert starts[-1] - starts[-2] == pytest.approx(INTERVAL_S)


def test_what_was_spent_comes_back_with_time():
    pace, now = TickPace(INTERVAL_S), 0.0
    for _ in range(100):
        now = begins(pace, now, 0.01)
    quiet = now + SAVED * INTERVAL_S
    assert begins(pace, quiet, 0.01) == pytest.approx(quiet + 0.01)


def test_ticks_that_take_longer_than_the_interval_follow_at_once():
    pace, now = TickPace(INTERVAL_S), 0.0
    for _ in range(100):
        assert begins(pace, now, 0.2) == pytest.approx(now + 0.2)
        now += 0.2


def test_without_an_interval_there_is_no_pause():
    pace = TickPace(0.0)
    assert begins(pace, 1.0, 0.001) == pytest.approx(1.001)
    assert pace.gather_s(1.0) == 0


def test_what_can_say_nothing_waits_for_an_interval_at_most():
    pace = TickPace(INTERVAL_S)
    assert pace.gather_s(1.0) == pytest.approx(INTERVAL_S)
    pace.gathers(1.0)
    pace.gathers(1.03)
    assert pace.gather_s(1.03) == pytest.approx(0.02)
    assert pace.gather_s(1.06) == 0
    pace.ticked(1.06)
    assert pace.gather_s(1.07) == pytest.approx(INTERVAL_S)


def test_the_sides_of_a_join_come_into_one_tick(open_here):
    site = open_here(tick_interval_s=60.0)
    site.execute(
        "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE STREAM T (a INTEGER) TIMESTAMP BY ts;"
        "CREATE QUERY q AS SELECT S.a FROM S [Range 5], T [Range 5] WHERE S.a = T.a;"
    )
    for stream in ("S", "T"):
        site.heartbeat(stream, 1)  # so that nothing but the last line below moves its time
    site.settle()
    before = len(site.ticker.recent)
    for stream in ("S", "T"):
        site.push(stream, pl.DataFrame({"ts": [1], "a": [1]}))
    for stream in ("S", "T"):
        site.heartbeat(stream, 2)
    for page in site.results("q", follow=True, timeout_s=50):
        if list(page.changes()):
            break
    else:
        pytest.fail("only the timer would have begun the tick")
    assert len(site.ticker.recent) == before + 1


def test_what_moves_no_time_is_ticked_over_too(open_here):
    site = open_here(tick_interval_s=0.05)
    site.execute(
        "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE STREAM T (a INTEGER) TIMESTAMP BY ts;"
        "CREATE QUERY q AS SELECT S.a FROM S [Range 5], T [Range 5] WHERE S.a = T.a;"
    )
    site.push("S", pl.DataFrame({"ts": [1], "a": [1]}))
    site.settle()
    assert not site.engine.store.inputs.has_landed()
