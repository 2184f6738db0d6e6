import threading
from pathlib import Path

import pytest
from tests.engine.sources.landings import Landed, stream_of

from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.push import PushSource

STREAM = stream_of("CREATE STREAM S (a INTEGER) TIMESTAMP BY ts FROM 'push:'")


@pytest.fixture
def pushed(tmp_path: Path):
    source, taken = PushSource(), Landed(tmp_path, STREAM)
    runner = threading.Thread(target=source.run, args=(taken.feed,))
    runner.start()
    yield source, taken
    taken.stop.set()
    runner.join(5)
    taken.close()


def test_a_push_has_landed_when_it_returns_and_counts_once(pushed):
    source, taken = pushed
    assert source.push([(1, 10), (2, 11)], batch_id="one").accepted == 2
    assert source.push([(1, 10), (2, 11)], batch_id="one").repeated
    assert taken.rows == [(1,), (2,)]


def test_pushes_from_many_threads_are_all_taken_one_after_the_other(pushed):
    source, taken = pushed
    threads = [
        threading.Thread(target=source.push, args=([(n, 5)] * 10,), kwargs={"partition": n % 2})
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(row[0] for row in taken.rows) == sorted(n for n in range(20) for _ in range(10))


def test_a_heartbeat_promises_that_nothing_older_comes(pushed):
    source, _ = pushed
    source.heartbeat(100)
    assert source.push([(1, 99), (2, 100)]).late == 1


def test_a_finished_stream_takes_no_more(pushed):
    source, taken = pushed
    source.finish()
    assert taken.is_finished
    with pytest.raises(SourceError, match="S has been finished"):
        source.push([(1, 1)])


def test_a_push_that_nobody_takes_is_an_error():
    with pytest.raises(SourceError, match="is its stream registered"):
        PushSource().push([(1, 1)], timeout_s=0.01)
