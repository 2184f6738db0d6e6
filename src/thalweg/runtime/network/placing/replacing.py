"""What is placed is placed anew, one fragment after the other.

The node of a query is the one writer of where its fragments run. It writes the whole plan down
before it begins, and every step when it is done, so that it can go on after a crash: a step that
was done and not written down finds the fragment where it should be.
"""

from __future__ import annotations

import logging
import threading

import msgspec

from thalweg.engine.failures import FAILURES
from thalweg.engine.site import Site, WrongUse
from thalweg.plan.catalog import StreamDef
from thalweg.runtime.data.messages import Move
from thalweg.runtime.network.fragments.fragments import Fragments
from thalweg.runtime.network.measuring import Task
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.placing.difference import Change
from thalweg.runtime.network.placing.tasks import Tasks

log = logging.getLogger(__name__)

_NOTE = "replacing"


class Step(msgspec.Struct, frozen=True):
    change: Change
    state: str = "waits"  # done, or failed
    why: str | None = None
    since: int | None = None  # the instant from which on it runs there


class Replacement(msgspec.Struct, frozen=True):
    """A difference that is carried out, and what queries are given with it."""

    strategy: str
    steps: tuple[Step, ...]
    tasks: tuple[Task, ...]

    @property
    def is_over(self) -> bool:
        return all(s.state != "waits" for s in self.steps)


class Replacing:
    def __init__(self, site: Site, mirrors: Mirrors, fragments: Fragments, tasks: Tasks) -> None:
        self._site, self._mirrors, self._fragments, self._tasks = site, mirrors, fragments, tasks
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def present(self) -> Replacement | None:
        """The one that is carried out, or was last."""
        note = self._site.engine.store.note(_NOTE)
        return None if note is None else msgspec.msgpack.decode(note, type=Replacement)

    def begin(self, wanted: Replacement) -> None:
        """Raises WrongUse while another one is carried out."""
        with self._lock:
            now = self.present()
            if now is not None and not now.is_over:
                raise WrongUse("fragments are on their way already: look again when they are there")
            self._write(wanted)
        self.go_on()

    def go_on(self) -> None:
        """With what a crash has left."""
        now = self.present()
        if now is None or now.is_over:
            return
        self._thread = threading.Thread(target=self._run, name="replacing", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()

    def _write(self, replacement: Replacement) -> None:
        self._site.engine.store.write_note(_NOTE, msgspec.msgpack.encode(replacement))

    def _run(self) -> None:
        now = self.present()
        assert now is not None
        steps = list(now.steps)
        for number, step in enumerate(steps):
            if self._stop.is_set():
                return
            if step.state != "waits":
                continue
            try:
                since = self._carry_out(step.change)
                steps[number] = msgspec.structs.replace(step, state="done", since=since)
            except FAILURES as error:
                if self._stop.is_set():
                    return  # to be gone on with
                log.warning("%s does not move: %s", step.change.publication, error)
                steps[number] = msgspec.structs.replace(step, state="failed", why=str(error))
            now = msgspec.structs.replace(now, steps=tuple(steps))
            if now.is_over:
                self._settle(now)
            self._write(now)

    def _carry_out(self, change: Change) -> int | None:
        """The instant of the change; None if nothing reads it any more. Raises SiteError."""
        self._fragments.move(Move(change.publication, change.was, change.fragment, change.to))
        stream = self._site.catalog.find(change.stream)
        if not isinstance(stream, StreamDef):
            return None  # the query was dropped meanwhile
        # Decided, and on disk: rows below it still come from the old place, if it takes for ever.
        return self._mirrors.routes(stream)[-1].since

    def _settle(self, done: Replacement) -> None:
        """What queries were given, where all of their steps are done."""
        failed = {s.change.query for s in done.steps if s.state == "failed"}
        standing = {q.name for q in self._site.catalog.queries()}
        for task in done.tasks:
            if task.query in standing and task.query not in failed:
                self._tasks.write(task)
