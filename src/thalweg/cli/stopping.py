"""A stop that comes to an end, whatever runs."""

from __future__ import annotations

import os
import threading

from thalweg.cli.output import note

PATIENCE_S = 10.0
STOPPED_HARD = 1


def interrupt(*_: object) -> None:
    """What signals do that end a command: as Ctrl-C does, so that all it has started is stopped."""
    raise KeyboardInterrupt


def stop_within(seconds: float = PATIENCE_S) -> None:
    """End this process by force, unless it has ended by itself by then. Nothing is lost by that:
    what was acknowledged is durable, and a tick that was interrupted is run again."""
    timer = threading.Timer(seconds, _end, (seconds,))
    timer.daemon = True
    timer.start()


def _end(seconds: float) -> None:
    note(f"still at work after {seconds:g} s: stopped hard; the next start repeats the last tick")
    os._exit(STOPPED_HARD)
