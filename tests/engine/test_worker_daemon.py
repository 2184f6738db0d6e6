import socket

import pytest

from thalweg.engine import worker_daemon


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours


def failing(error):
    def worker(sock, authenticated):
        raise error

    return worker


def test_a_worker_that_spark_has_let_go_just_ends(pair, monkeypatch):
    monkeypatch.setattr(worker_daemon, "_worker", failing(BrokenPipeError()))
    assert worker_daemon.worker(pair, authenticated=True) == 1


def test_any_other_end_is_an_error_still(pair, monkeypatch):
    monkeypatch.setattr(worker_daemon, "_worker", failing(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        worker_daemon.worker(pair, authenticated=True)


def test_workers_of_a_session_come_from_this_daemon(spark):
    def parent(_):
        import os
        from pathlib import Path

        return Path(f"/proc/{os.getppid()}/cmdline").read_text()

    (command,) = spark.sparkContext.parallelize([0], 1).map(parent).collect()
    assert "thalweg.engine.worker_daemon" in command
