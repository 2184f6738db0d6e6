"""Spark's daemon of Python workers, which says nothing when Spark lets an idle worker go.

Spark closes the socket of a worker that has had nothing to do for a minute. Over a Unix socket the
worker listeners as it says goodbye, and PySpark's daemon prints that as an error. Spark runs this
module in the daemon's place (`spark.python.daemon.module`); it must not start threads.
"""

from __future__ import annotations

import socket

from pyspark import daemon

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """As PySpark's; 1 tells the daemon that this worker is at its end."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
