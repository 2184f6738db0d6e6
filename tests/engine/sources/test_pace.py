import random
import threading
import time
from pathlib import Path

import pytest
from tests.engine.sources.landings import stream_of

from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.frames import FOREVER
from thalweg.engine.sources.feed import Stopped
from thalweg.engine.sources.iterable import IterableSource
from thalweg.engine.sources.pace import Pace, PacedFeed

STREAMS = [stream_of(f"CREATE STREAM {n} (a INTEGER) TIMESTAMP BY ts") for n in "ABC"]
STAMPS = {"A": range(0, 100, 2), "B": range(50, 150), "C": [500]}


class Slow(IterableSource):
    """Takes its time, now and then."""

    def _batches(self, feed):
        chance = random.Random(feed.stream.name)
        for batch in super()._batches(feed):
            time.sleep(chance.choice([0, 0, 0.003]))
            yield batch


def test_the_stream_that_is_furthest_behind_goes_first(tmp_path: Path):
    engine = SharedEngine(tmp_path, durable=False)
    stop, landed = threading.Event(), threading.Event()
    pace = Pace(STREAMS, stop)

    def run(stream) -> None:
        rows = [(1, ts) for ts in STAMPS[stream.name]]
        feed = PacedFeed(engine, stream, pace, stop=stop, largest_backlog=9999, landed=landed)
        Slow(rows, rows_per_batch=5).run(feed)

    threads = [threading.Thread(target=run, args=(s,)) for s in STREAMS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert pace.is_over()
    sql = "SELECT stream, newest FROM landed WHERE newest < ? ORDER BY id"
    sequence = engine.store.all(sql, FOREVER)
    # A merge of the batches: each goes when no other stream is further behind.
    reached = dict.fromkeys("ABC", -1)
    left = {name: -(-len(STAMPS[name]) // 5) for name in "ABC"}
    for stream, newest in sequence:
        assert all(reached[stream] <= reached[o] for o in "ABC" if left[o])
        reached[stream] = newest
        left[stream] -= 1
    assert not any(left.values())
    engine.close()


def test_who_waits_for_a_turn_is_stopped_too():
    stop = threading.Event()
    pace = Pace(STREAMS[:2], stop)
    pace.reach("A", 5)
    threading.Timer(0.05, stop.set).start()
    with pytest.raises(Stopped):
        pace.wait_for_turn("A")
