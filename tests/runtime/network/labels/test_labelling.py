"""The home of a stream labels its rows, whatever comes between: readers get what the reference says
of their classes, while others start, join and end, and the home begins again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.drawn import examples
from tests.runtime.waiting import eventually

from thalweg.cql import compile_placed, compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.engine.reference.tolerance import held, passed
from thalweg.engine.shared.state.names import LABEL, LABELLED
from thalweg.engine.site import IN_PROCESS, SiteError, open_site
from thalweg.engine.site.publications import Publications
from thalweg.engine.site.settings import SiteSettings
from thalweg.plan.coherency.tolerance import ChangesSince, Deviation, RelativeDeviation
from thalweg.plan.nodes import Scan, Tolerant
from thalweg.plan.travelling import encode_plan
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.messages import Label
from thalweg.runtime.data.server import CannotPublish
from thalweg.runtime.network.labels import label_source, labelling
from thalweg.runtime.network.labels.labelling import Labelling
from thalweg.runtime.network.labels.labels import class_text

TEXT = "CREATE STREAM S (k BIGINT, v DOUBLE, t BIGINT) TIMESTAMP BY t LATENESS 2"
(S,) = compile_script(TEXT).catalog.streams()
DUE, COLUMNS, END = "due/S", ("k", "v", "t"), 1_000_000


@dataclass(frozen=True)
class Reader:
    publication: str
    node: Tolerant
    horizon: int
    since: int


class Home:
    """A site that labels, and readers who have all that there is of a class."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.arrivals: list[Arrival] = []
        self.readers: list[Reader] = []
        self._opened = 0
        self.open()
        self.site.execute(TEXT)

    def open(self) -> None:
        self.labelling = Labelling()
        self.site = open_site(
            self._folder,
            compile_placed,
            master=IN_PROCESS,
            settings=SiteSettings(durable=False, tick_interval_s=0.002),
            schemes={LABELLED: self.labelling.source},
        )
        self.publications = Publications(self.site)
        self.labelling.attach(self.site, self.publications)

    def begin_again(self) -> None:
        self.site.close()
        self.open()

    def push(self, rows: list[tuple[int, int, float]]) -> None:
        for k, t, v in rows:
            self.arrivals.append(Arrival(0, t, len(self.arrivals), (k, v, t)))
        found = [(k, v, t) for k, t, v in rows]
        self.site.push("S", pl.DataFrame(found, schema=list("kvt"), orient="row"))

    def read(self, node: Tolerant) -> None:
        """As who opens a stream of this node does it."""
        asked = Label("S", "r", (encode_plan(node),), None, COLUMNS)
        (number,) = self.labelling.label(asked).numbers
        book = self.labelling.book(DUE)
        start = book.started[number]
        assert book.by_number[start.class_].text == class_text(node)
        self._opened += 1
        where = (f"HAS_ANY({LABEL}, '{number}')",)
        columns = (*COLUMNS, LABEL)
        with self.labelling.beginning(self.site.stream(DUE), where) as begins:
            if begins is not None and begins.watermark <= BEGINNING:
                begins = None
            name, _ = self.publications.open(
                DUE, "r", self._opened, None, where, columns=columns, past=begins
            )
        self.readers.append(Reader(name, node, book.horizon(start), start.since))

    def wait_for(self, instant: int) -> None:
        watermark = self.site.engine.watermark
        eventually(lambda: watermark(DUE) >= watermark("S") >= instant)

    def let_go(self) -> None:
        """What was asked for a while ago is not held any more."""
        self.labelling._asked.clear()
        self.labelling._release(DUE)

    def leave(self, reader: Reader) -> None:
        self.readers.remove(reader)
        self.publications.close(reader.publication)
        self.labelling._asked.clear()
        self.labelling.drop_unused()  # sees it for the first time
        self.labelling.drop_unused()

    def said(self, reader: Reader) -> list[tuple[int, int]]:
        pieces = list(self.publications.read(reader.publication, BEGINNING))
        found = [p.rows.select("_instant", "_position") for p in pieces]
        return sorted(pl.concat(found).rows()) if found else []

    def expected(self, reader: Reader) -> list[tuple[int, int]]:
        counted = [a for a in self.taken if a.timestamp >= reader.horizon]
        found = passed(reader.node, sorted(counted, key=lambda a: (a.timestamp, a.position)))
        if reader.since > BEGINNING:
            found = held(found, reader.node, reader.since)
        return sorted((a.timestamp, a.position) for _, a in found if a.timestamp < END)

    @property
    def taken(self) -> list[Arrival]:
        """Without those that came too late."""
        newest, found, number = BEGINNING, [], 0
        for a in self.arrivals:
            if a.timestamp >= newest - 2:
                found.append(Arrival(0, a.timestamp, number, a.row))
                number += 1
            newest = max(newest, a.timestamp)
        return found

    def check(self) -> None:
        self.push([(9, END, 0.0)])
        for reader in self.readers:
            eventually(lambda r=reader: self._frontier(r) > END - 3)  # type: ignore[misc]
            assert self.said(reader) == self.expected(reader), reader

    def _frontier(self, reader: Reader) -> int:
        pieces = list(self.publications.read(reader.publication, BEGINNING))
        return pieces[-1].upto if pieces else BEGINNING


@contextmanager
def at_home() -> Iterator[Home]:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        try:
            yield home
        finally:
            home.site.close()


def by_value(amount: str, column: int = 1) -> Tolerant:
    return Tolerant(Scan(S), Deviation(Decimal(amount)), column, (0,))


CLASSES = [
    by_value("1"),
    by_value("2.5"),
    Tolerant(Scan(S), RelativeDeviation(Decimal("0.5")), 1, (0,)),
    Tolerant(Scan(S), ChangesSince(2), None, (0,)),
    Tolerant(Scan(S), ChangesSince(1), None, ()),
]
row = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(-1, 2), st.integers(-2, 2))
pushes = st.tuples(st.just("push"), st.lists(row, min_size=1, max_size=6))
steps = st.one_of(
    pushes,
    pushes,
    st.tuples(st.just("read"), st.sampled_from(CLASSES)),
    st.tuples(st.just("read"), st.sampled_from(CLASSES[:2])),
    st.tuples(st.sampled_from(["again", "let go", "wait"]), st.none()),
    st.tuples(st.just("leave"), st.integers(0, 9)),
)


@settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(steps, min_size=4, max_size=16), st.booleans(), st.booleans())
def test_readers_get_what_is_due_for_them(
    monkeypatch: pytest.MonkeyPatch, what: list[tuple[str, object]], keeps: bool, hoards: bool
) -> None:
    monkeypatch.setattr(labelling, "UNREAD_FOR_S", 0.0)
    monkeypatch.setattr(label_source, "KEEP_EVERY_S", 0.0 if keeps else 1e9)
    monkeypatch.setattr(label_source, "_KEEP_SHARE", 0)
    with at_home() as home:
        if hoards:
            home.site.execute("CREATE QUERY keeper AS SELECT k, v FROM S [Range 100000]")
        _play(home, what)
        home.check()


def _play(home: Home, what: list[tuple[str, object]]) -> None:
    now, values = 0, dict.fromkeys(range(3), 10.0)
    home.read(CLASSES[0])
    for step, of in what:
        match step, of:
            case "push", list(rows):
                found = []
                for k, gap, change, back in rows:
                    now += gap
                    values[k] += change
                    found.append((k, max(0, now - max(0, back)), values[k]))
                home.push(found)
            case "read", Tolerant():
                home.read(of)
            case "again", _:
                home.begin_again()
            case "let go", _:
                home.let_go()
            case "wait", _ if now > 3:
                home.wait_for(now - 3)
            case "leave", int(which) if len(home.readers) > 1:
                home.leave(home.readers[which % len(home.readers)])


def test_who_comes_later_begins_with_what_is_held() -> None:
    """And others of the same class are not told what was before."""
    with at_home() as home:
        home.read(CLASSES[0])
        home.push([(t % 3, t, t / 3) for t in range(60)])
        eventually(lambda: home.site.engine.watermark(DUE) >= 50)
        home.let_go()
        home.push([(t % 3, t, t / 3) for t in range(60, 70)])
        kept = home.site.engine.store.inputs
        eventually(lambda: kept.complete_from(DUE, ()) > BEGINNING)
        home.read(CLASSES[0])
        home.read(CLASSES[0])
        first, later, last = home.readers
        assert first.since == BEGINNING < later.since == last.since
        home.push([(t % 3, t, t / 3) for t in range(70, 80)])
        home.begin_again()
        home.check()
        book = home.labelling.book(DUE)
        assert (len(book.classes), len(book.starts)) == (1, 2)
        assert len(home.said(later)) < len(home.said(first))


def test_what_is_gone_of_a_class_does_not_come_back_with_another() -> None:
    """The past of the one is handed over; of the other it is still missing."""
    with at_home() as home:
        home.site.execute("CREATE QUERY keeper AS SELECT k, v FROM S [Range 100000]")
        home.read(CLASSES[0])
        home.push([(t % 3, t, t / 3) for t in range(60)])
        eventually(lambda: home.site.engine.watermark(DUE) >= 50)
        home.let_go()
        home.push([(t % 3, t, t / 3) for t in range(60, 70)])
        kept = home.site.engine.store.inputs
        eventually(lambda: kept.complete_from(DUE, ()) > BEGINNING)
        home.read(CLASSES[1])
        home.push([(t % 3, t, t / 3) for t in range(70, 80)])
        eventually(lambda: home.site.engine.watermark(DUE) >= 75)
        home.read(CLASSES[0])
        assert [r.since > BEGINNING for r in home.readers] == [False, False, True]
        home.check()


def test_a_class_ends_when_nobody_has_read_it_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with at_home() as home:
        home.read(CLASSES[0])
        home.read(CLASSES[1])
        home.push([(t % 3, t, t / 3) for t in range(30)])
        home.leave(home.readers[0])
        assert len(home.labelling.book(DUE).classes) == 2  # its reader may hang somewhere else
        monkeypatch.setattr(labelling, "UNREAD_FOR_S", 0.0)
        home.labelling.drop_unused()
        (left,) = home.labelling.book(DUE).classes
        assert left.text == class_text(CLASSES[1])
        with (
            pytest.raises(SiteError, match="has ended: submit again"),
            home.labelling.beginning(home.site.stream(DUE), (f"HAS_ANY({LABEL}, '1')",)),
        ):
            pass
        home.read(CLASSES[0])  # it begins anew
        home.check()


def test_what_an_older_version_has_begun_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    with at_home() as home:
        home.read(CLASSES[0])
        home.site.engine.store.delete_note("labels/due/S/book")
        home.begin_again()
        asked = Label("S", "r", (encode_plan(CLASSES[0]),), None, COLUMNS)
        with pytest.raises(CannotPublish, match="begun by an older version"):
            home.labelling.label(asked)
        eventually(lambda: "source of due/S: due/S was begun by an older version" in caplog.text)
        (reader,) = home.readers
        home.leave(reader)
        assert home.site.catalog.find(DUE) is None
        home.readers.clear()
        home.read(CLASSES[0])
        home.push([(t % 3, t, t / 3) for t in range(30)])
        home.check()
