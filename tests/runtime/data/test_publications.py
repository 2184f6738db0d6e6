"""A stream of one site, read at another: the same rows, whatever breaks between them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.runtime.links import Relay
from tests.runtime.waiting import eventually

from thalweg.cql import compile_script
from thalweg.engine.site import IN_PROCESS, Site, open_site
from thalweg.engine.site.publications import MIRRORS, needs_of
from thalweg.engine.site.settings import SiteSettings
from thalweg.engine.sources.feed import Source
from thalweg.plan.catalog import StreamDef
from thalweg.runtime.data import mirror
from thalweg.runtime.data.client import DataClient, NotServed, Unreachable
from thalweg.runtime.data.messages import Acknowledge, Close, Open, Opened, Read
from thalweg.runtime.data.mirror import MirrorSource
from thalweg.runtime.data.routes import Route
from thalweg.runtime.data.server import DataServer
from thalweg.runtime.data.statements import mirror_text, reach_of

SCRIPT = """
CREATE STREAM S (k BIGINT, v VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE STREAM T (at TIMESTAMP, x DECIMAL(10, 2)) TIMESTAMP BY at;
CREATE RELATION R (k BIGINT, n VARCHAR) TIMESTAMP BY ts BIGINT IDLE 50 MILLISECONDS;
CREATE TABLE U (k BIGINT, name VARCHAR, PRIMARY KEY (k));
CREATE QUERY keeps AS SELECT COUNT(*) FROM S [Range 1000];
"""


@dataclass
class Pair:
    """A home and a reader of its streams."""

    folder: Path
    settings: SiteSettings = field(default_factory=lambda: SiteSettings(durable=False))  # at home
    number: int = 0
    relay: Relay | None = None  # between the two

    def open_home(self, listen: str = "127.0.0.1:0") -> None:
        self.home = open_site(
            self.folder / "home", compile_script, master=IN_PROCESS, settings=self.settings
        )
        self.server = DataServer(listen, self.home)

    def open_reader(self) -> None:
        self.reader = open_site(
            self.folder / "reader",
            compile_script,
            master=IN_PROCESS,
            settings=SiteSettings(durable=False),
            schemes={MIRRORS: self._mirror},
        )

    def _mirror(self, stream: StreamDef) -> Source:
        publication = dict(stream.options)["publication"]
        return MirrorSource(
            stream,
            "home",
            lambda: (Route(publication),),
            lambda _: DataClient(self.relay.address if self.relay else self.server.address),
            lambda: needs_of(self.reader, stream.name),
        )

    def close_home(self) -> None:
        self.server.shutdown()
        self.home.close()

    def submit(self, text: str) -> None:
        """At the reader, with streams of the home that it does not have yet."""
        self.number += 1
        query = compile_script(text, self.home.catalog).queries[0]
        mirrors, pasts = [], {}
        client = DataClient(self.server.address)
        for stream in [s for s in self.home.catalog.streams() if f" {s.name}" in text]:
            if self.reader.catalog.find(stream.name) is not None:
                continue
            reach = reach_of(query.plan, stream.name)
            opened = client.ask(Open(stream.name, "reader", self.number, reach))
            assert isinstance(opened, Opened)
            mirrors.append(mirror_text(stream, "home", opened.publication))
            pasts[stream.name] = opened.past
        client.close()
        self.reader.execute("; ".join([*mirrors, text]), pasts=pasts)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    made.open_home()
    made.home.execute(SCRIPT)
    made.open_reader()
    yield made
    made.reader.close()
    with suppress(Exception):
        made.close_home()


def push(site: Site, *rows: tuple[int, int, str]) -> None:
    ts, k, v = zip(*rows, strict=True)
    site.push("S", pl.DataFrame({"ts": ts, "k": k, "v": v}))


def said(site: Site, query: str) -> list[tuple[object, ...]]:
    return [row for page in site.results(query) for row in page.emission.rows.iter_rows()]


def frontier(site: Site, query: str) -> int:
    return site.reader(site.query(query)).frontier().instant


def same_at_both(pair: Pair, query: str, upto: int) -> None:
    eventually(lambda: frontier(pair.reader, query) >= upto)
    eventually(lambda: frontier(pair.home, query) >= upto)
    assert said(pair.reader, query) == said(pair.home, query)


def both(pair: Pair, text: str) -> None:
    pair.home.settle()
    pair.submit(text)
    pair.home.execute(text)


def test_a_late_query_begins_with_what_its_windows_ask_for(pair: Pair) -> None:
    push(pair.home, (1, 1, "a"), (5, 2, "b"), (9, 1, "c"))
    both(pair, "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM S [Range 6] GROUP BY k")
    push(pair.home, (10, 1, "d"), (20, 3, "e"))
    same_at_both(pair, "q", 20)
    assert said(pair.reader, "q")[0][:2] == (9, 1)


def test_tuples_of_one_instant_keep_their_order(pair: Pair) -> None:
    """A Rows window looks at it."""
    push(pair.home, (1, 9, "x"), (1, 2, "z"), (1, 5, "a"))
    both(pair, "CREATE QUERY last AS SELECT k, v FROM S [Rows 2]")
    push(pair.home, (2, 4, "z"), (2, 1, "b"), (2, 3, "a"), (9, 0, "end"))
    same_at_both(pair, "last", 9)


def test_an_unbounded_window_begins_with_all_that_the_home_has(pair: Pair) -> None:
    push(pair.home, (1, 9, "x"), (2, 2, "z"))
    both(pair, "CREATE QUERY every AS SELECT k, COUNT(*) AS n FROM S GROUP BY k")
    push(pair.home, (3, 9, "z"), (9, 0, "end"))
    same_at_both(pair, "every", 9)
    assert said(pair.reader, "every")[0][:2] == (2, 1)


def test_a_relation_begins_with_its_content_and_a_silent_one_holds_nobody_up(pair: Pair) -> None:
    pair.home.push("R", pl.DataFrame({"ts": [1, 1], "k": [1, 2], "n": ["one", "two"], "op": "+"}))
    push(pair.home, (3, 1, "a"))
    both(pair, "CREATE QUERY j AS SELECT S.v, R.n FROM S [Range 5], R WHERE S.k = R.k")
    push(pair.home, (4, 2, "b"), (7, 1, "c"), (100, 9, "end"))
    same_at_both(pair, "j", 100)


def test_a_table_of_another_node_is_joined_and_changed(pair: Pair) -> None:
    pair.home.execute("INSERT INTO U VALUES (1, 'one'), (2, 'two')")
    push(pair.home, (3, 1, "a"))
    pair.home.settle()
    pair.submit("CREATE QUERY j AS SELECT S.v, U.name FROM S [Now], U WHERE S.k = U.k")
    push(pair.home, (4, 2, "b"), (6, 1, "c"))
    eventually(lambda: frontier(pair.reader, "j") >= 6)
    pair.home.execute("INSERT INTO U VALUES (1, 'uno')")
    push(pair.home, (20, 1, "d"), (30, 9, "end"))
    eventually(lambda: frontier(pair.reader, "j") >= 30)
    entered = [row[2:] for row in said(pair.reader, "j") if row[1] == 1]
    assert entered == [("a", "one"), ("b", "two"), ("c", "one"), ("d", "uno")]


def test_timestamps_and_decimals_arrive_as_they_were(pair: Pair) -> None:
    both(pair, "CREATE QUERY sums AS SELECT at, SUM(x) AS s FROM T [Range 2 SECONDS] GROUP BY at")
    at = pl.Series(["2026-01-01T10:00:00", "2026-01-01T10:00:01.5", "2026-01-01T10:00:09"])
    rows = pl.DataFrame({"at": at.str.to_datetime(), "x": ["1.10", "2.25", "0.01"]})
    pair.home.push("T", rows)
    pair.home.finish("T")
    same_at_both(pair, "sums", 2**61)


def test_a_reader_that_restarts_goes_on_where_it_was(pair: Pair) -> None:
    both(pair, "CREATE QUERY q AS SELECT k, v FROM S [Range 6]")
    for step in range(6):
        push(pair.home, *((10 * step + i, i, "x") for i in range(10)))
        if step % 2:
            pair.reader.close()
            pair.open_reader()
    same_at_both(pair, "q", 59)


def test_a_home_that_was_away_is_waited_for(pair: Pair) -> None:
    both(pair, "CREATE QUERY q AS SELECT k, v FROM S [Range 6]")
    push(pair.home, (1, 1, "a"), (2, 2, "b"))
    eventually(lambda: frontier(pair.reader, "q") >= 2)
    address = pair.server.address
    pair.close_home()
    feed = pair.reader.feeds.find("S")
    assert feed is not None
    eventually(lambda: "home can't be reached since" in (feed.error or ""))
    pair.open_home(address)
    push(pair.home, (3, 1, "c"), (20, 2, "d"))
    same_at_both(pair, "q", 20)
    eventually(lambda: feed.error is None)


def test_a_home_that_is_back_is_not_called_unreachable_though_it_is_quiet(pair: Pair) -> None:
    both(pair, "CREATE QUERY q AS SELECT k, v FROM S [Range 6]")
    push(pair.home, (1, 1, "a"), (2, 2, "b"))
    eventually(lambda: frontier(pair.reader, "q") >= 2)
    address = pair.server.address
    pair.close_home()
    feed = pair.reader.feeds.find("S")
    assert feed is not None
    eventually(lambda: "home can't be reached since" in (feed.error or ""))
    pair.open_home(address)
    eventually(lambda: feed.error is None)


def test_who_has_not_been_heard_since_the_start_may_be_starting_too(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    both(pair, "CREATE QUERY q AS SELECT k, v FROM S [Range 6]")
    address = pair.server.address
    pair.reader.close()
    pair.close_home()
    asked = []
    read = DataClient.read

    def counted(client: DataClient, ticket: Read) -> Any:
        asked.append(ticket)
        return read(client, ticket)

    monkeypatch.setattr(DataClient, "read", counted)
    monkeypatch.setattr(mirror, "BEGINS_WITHIN_S", 3600.0)
    pair.open_reader()
    eventually(lambda: len(asked) > 3)
    feed = pair.reader.feeds.find("S")
    assert feed is not None
    assert feed.error is None
    pair.open_home(address)
    push(pair.home, (3, 1, "c"), (20, 2, "d"))
    same_at_both(pair, "q", 20)


def test_a_link_that_is_cut_slow_or_breaks_costs_time_and_nothing_else(pair: Pair) -> None:
    with Relay(pair.server.address) as relay:
        pair.relay = relay
        both(pair, "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM S [Range 6] GROUP BY k")
        trouble = [relay.cut, lambda: relay.delay(0.2), relay.hang_up, relay.refuse]
        for step in range(8):
            push(pair.home, *((10 * step + i, i % 3, "x") for i in range(10)))
            trouble[step % 4]()
            time.sleep(0.3)
            relay.heal()
        same_at_both(pair, "q", 79)
        assert relay.connections > 2
        pair.reader.close()


def test_results_are_kept_for_a_reader_that_is_away(tmp_path: Path) -> None:
    made = Pair(tmp_path, SiteSettings(durable=False, retained_ticks=5, tick_interval_s=0))
    made.open_home()
    made.home.execute(SCRIPT)
    made.open_reader()
    both(made, "CREATE QUERY q AS SELECT COUNT(*) AS n FROM S [Range 6]")
    made.reader.close()
    for step in range(40):
        push(made.home, (step, step, "x"))
        made.home.settle()
    made.open_reader()
    eventually(lambda: frontier(made.reader, "q") >= 39)
    rows = [row for row in said(made.reader, "q") if row[1] == 1]
    made.home.finish("S")
    eventually(lambda: frontier(made.reader, "q") > 100)
    newest = [row for row in said(made.reader, "q") if row[1] == 1][-1]
    made.reader.close()
    made.close_home()
    assert [row[2] for row in rows][:7] == [1, 2, 3, 4, 5, 6, 7]
    assert newest[2] == 0


def test_what_is_acknowledged_goes_and_is_then_refused(tmp_path: Path) -> None:
    made = Pair(tmp_path, SiteSettings(durable=False, retained_ticks=5, tick_interval_s=0))
    made.open_home()
    made.home.execute(SCRIPT)
    client = DataClient(made.server.address)
    opened = client.ask(Open("S", "reader", 1, 0))
    assert isinstance(opened, Opened)
    for step in range(40):
        push(made.home, (step, step, "x"))
        made.home.settle()
        client.ask(Acknowledge(opened.publication, step - 5))
    with pytest.raises(NotServed, match="no longer kept"):
        next(client.read(Read(opened.publication, 3)))
    range_, rows = next(client.read(Read(opened.publication, 36)))
    assert (range_.low, rows["k"].to_list()[0]) == (36, 36)
    client.close()
    made.close_home()


def test_a_subscription_is_opened_once_and_closed(pair: Pair) -> None:
    client = DataClient(pair.server.address)
    first = client.ask(Open("S", "reader", 1, 10))
    assert client.ask(Open("S", "reader", 1, 10)) == first
    assert isinstance(first, Opened)
    client.ask(Close(first.publication))
    client.ask(Close(first.publication))
    with pytest.raises(NotServed, match="no publication"):
        next(client.read(Read(first.publication, 0)))
    with pytest.raises(NotServed, match="no stream"):
        client.ask(Open("Nowhere", "reader", 1, 10))
    client.close()


def test_nobody_there_is_said(tmp_path: Path) -> None:
    client = DataClient("127.0.0.1:1")
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        client.ask(Close("pub/S>b.1"))
    client.close()
