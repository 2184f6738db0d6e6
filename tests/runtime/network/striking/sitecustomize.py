"""Loaded by nodes that a test starts with this folder on PYTHONPATH: kills at a step of a move.

The file that THALWEG_STRIKE names says at which step (`say handover Taken`, `do track`) which
process is to be killed. Who comes to the step first takes the file away, so that it happens once.
"""

import functools
import os
import signal
from pathlib import Path

ORDER = os.environ.get("THALWEG_STRIKE")


def reached(step: str) -> None:
    order = Path(ORDER)
    try:
        wanted, pid = order.read_text().split("\n")
        if wanted != step:
            return
        order.unlink()
    except FileNotFoundError:
        return
    os.kill(int(pid), signal.SIGKILL)


def kind(said: object) -> str:
    return type(said).__name__


def before(of: type, name: str, step: object) -> None:
    """Whoever calls the method comes to the step that its arguments say."""
    method = getattr(of, name)

    @functools.wraps(method)
    def struck(self, *given, **more):
        reached(step(*given))
        return method(self, *given, **more)

    setattr(of, name, struck)


def prepare() -> None:
    from thalweg.runtime.driver.driver import Driver
    from thalweg.runtime.network.moves.moving import LiveMoves
    from thalweg.runtime.network.moves.taking import Taker
    from thalweg.runtime.transport.transport import Transport

    # A driver sends what a step says only once what the step persists is on disk.
    before(Driver, "send", lambda machine, protocol, to, said: f"write {protocol} {kind(said)}")
    before(Transport, "send", lambda to, protocol, said: f"say {protocol} {kind(said)}")
    for name in ("describe", "piece", "track"):
        before(LiveMoves, name, lambda *_, name=name: f"do {name}")
    before(Taker, "stand", lambda *_: "do stand")

    told = LiveMoves.moved

    @functools.wraps(told)
    def moved(self, publication):
        found = told(self, publication)
        if found is not None:
            reached("do follow")
        return found

    LiveMoves.moved = moved


if ORDER is not None:
    prepare()
