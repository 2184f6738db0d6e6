"""By which publications a mirror is fed: changes by several threads of a node."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.types import BIGINT
from thalweg.runtime.data.messages import MovedTo
from thalweg.runtime.data.routes import Place, Route, encode_place
from thalweg.runtime.network.mirrors.routing import Routing

MIRROR = StreamDef(
    "S",
    (Field("t", BIGINT),),
    "t",
    BIGINT,
    source="publication:home",
    options=(("publication", "pub/S>me.1"),),
)


class Notes:
    """A book that lets somebody else go first while it is written."""

    def __init__(self) -> None:
        self.notes: dict[str, bytes] = {}
        self._lock = threading.RLock()
        self.meanwhile: threading.Thread | None = None

    def transaction(self) -> threading.RLock:
        return self._lock

    def note(self, key: str) -> bytes | None:
        with self._lock:
            return self.notes.get(key)

    def write_note(self, key: str, value: bytes) -> None:
        thread, self.meanwhile = self.meanwhile, None
        if thread is not None:
            thread.start()
            thread.join(0.5)
        self.notes[key] = value

    def delete_note(self, key: str) -> None:
        self.notes.pop(key, None)


def routing(place: Place | None = None) -> tuple[Routing, Notes]:
    notes = Notes()
    packed = None if place is None else encode_place(place)
    landing = SimpleNamespace(resume_point=lambda _: packed)
    site: Any = SimpleNamespace(engine=SimpleNamespace(store=notes, landing=landing))
    made = Routing()
    made.attach(site)
    return made, notes


def test_who_moves_and_who_takes_over_at_once_lose_no_route() -> None:
    made, notes = routing(Place("pub/S>me.1", 7))
    moved, taken = Route("pub/S>me.2", since=9, at="there"), Route("pub/S>me.3", since=7, at="me")
    notes.meanwhile = other = threading.Thread(target=lambda: made.add(MIRROR, moved))
    made.succeed(MIRROR, taken, ())
    other.join()
    assert [r.publication for r in made.routes(MIRROR)] == [
        "pub/S>me.1",
        "pub/S>me.3",
        "pub/S>me.2",
    ]
    again, _ = routing()
    again._site.engine.store.notes.update(notes.notes)  # type: ignore[union-attr,attr-defined]
    assert again.routes(MIRROR) == made.routes(MIRROR), "what is on disk is what is in memory"


def test_a_mirror_that_nothing_has_come_to_begins_with_the_successor() -> None:
    made, _ = routing()
    left = made.succeed(MIRROR, Route("pub/S>me.2", since=7, at="me"), ())
    assert [r.publication for r in left] == ["pub/S>me.1"]
    assert made.needed(MIRROR) == "me"


def test_what_goes_on_elsewhere_stands_behind_the_way_that_told_it() -> None:
    made, _ = routing(Place("pub/S>me.1", 7))
    made.add(MIRROR, Route("pub/S>me.2", since=20, at="last"))
    told = MovedTo(10, "next", "pub/S>me.9")
    assert made.go_on_at(MIRROR, "pub/S>me.1", told)
    assert not made.go_on_at(MIRROR, "pub/S>me.1", told)
    assert made.publishers(MIRROR) == ("home", "next", "last")
    left, now = made.switch(MIRROR, "pub/S>me.9")
    assert [r.publication for r in left] == ["pub/S>me.1"]
    assert now.since == 10
    assert made.publishers(MIRROR) == ("next", "last")


def test_routes_are_read_while_a_transaction_of_the_book_writes_some() -> None:
    """As when a fragment moves in: its routes are written in the transaction that makes it."""
    made, notes = routing()
    read = threading.Thread(target=made.routes, args=(MIRROR,), daemon=True)
    with notes.transaction():
        read.start()
        made.write(MIRROR, (Route("pub/S>me.2"),))
    read.join(5)
    assert not read.is_alive()
