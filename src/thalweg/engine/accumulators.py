"""Spark's accumulator server, which takes the updates of tasks in the driver's process."""

from __future__ import annotations

import socketserver
import sys
from collections.abc import Callable
from typing import Any

from pyspark import SparkContext


def end_quietly(context: SparkContext) -> None:
    """When a session stops, the JVM may hang up before that server hears of it, which then prints a
    traceback though nothing is wrong."""
    server = getattr(context, "_accumulatorServer", None)
    if isinstance(server, socketserver.BaseServer):
        server.handle_error = without_hang_ups(server.handle_error)  # type: ignore[method-assign]


def without_hang_ups(told: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """All other errors are told as before."""

    def handle(request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            told(request, address)

    return handle
