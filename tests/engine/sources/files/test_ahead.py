import threading
import time

import pytest

from thalweg.engine.sources.files.ahead import ahead


def test_items_come_in_order_and_only_so_many_in_advance():
    made: list[int] = []

    def items():
        for n in range(20):
            made.append(n)
            yield n

    found = []
    for n in ahead(items(), 2):
        time.sleep(0.01)
        assert len(made) - n <= 5  # two waiting, one to be put, one in use
        found.append(n)
    assert found == list(range(20))


def test_an_error_comes_behind_the_items_before_it():
    def items():
        yield 1
        raise OSError("gone")

    reading = ahead(items(), 2)
    assert next(reading) == 1
    with pytest.raises(OSError, match="gone"):
        next(reading)


def test_who_stops_early_leaves_no_thread_behind():
    before = threading.active_count()
    reading = ahead(iter(range(1000)), 2)
    assert next(reading) == 0
    reading.close()
    assert threading.active_count() == before
