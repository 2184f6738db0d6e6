import threading
import time
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
from tests.engine.site.conftest import OpenSite, rows, said

from thalweg.cql import CqlError
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.site import Position, Site, SiteError, Unknown, WrongUse
from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.feed import Feed

S = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts;"


def test_a_query_says_what_becomes_final(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 2]")
    site.push("S", rows((1, 10), (5, 20)))
    site.settle()
    assert said(site, "q") == [(1, "+", 10), (4, "-", 10)]


def test_a_script_with_a_mistake_registers_nothing(site: Site) -> None:
    with pytest.raises(CqlError):
        site.execute(S + "CREATE QUERY q AS SELECT a FROM S; SELECT b FROM S")
    assert site.catalog.definitions == {}
    assert site.engine.roster.queries == {}
    assert site.book.script() == ""


def test_a_script_that_fails_while_it_is_registered_is_taken_back_whole(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.execute(S + "CREATE QUERY old AS SELECT a FROM S [Range 3]")
    site.push("S", rows((1, 1)))
    site.settle()

    def no_room(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(site.engine.store.runs, "begin", no_room)
    with pytest.raises(OSError, match="no room"):
        site.execute("DROP QUERY old; CREATE STREAM T (b INTEGER) TIMESTAMP BY ts; SELECT b FROM T")
    monkeypatch.undo()
    assert [q.name for q in site.queries()] == ["old"]
    assert [s.name for s in site.streams()] == ["S"]
    site.push("S", rows((9, 9)))
    site.settle()
    assert said(site, "old") == [(1, "+", 1), (5, "-", 1)]


def test_a_name_that_is_taken_is_refused(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S")
    with pytest.raises(CqlError, match='there already is a query "q"'):
        site.execute("CREATE QUERY Q AS SELECT a FROM S")


def test_queries_go_on_by_name_after_a_restart(open_here: OpenSite) -> None:
    text = (
        S + "CREATE VIEW V AS SELECT a FROM S [Range 4]; SELECT a, COUNT(*) AS n FROM V GROUP BY a"
    )
    parts = [rows((1, 7), (2, 7)), rows((3, 8), (4, 7)), rows((9, 1))]
    whole = open_here("whole")
    whole.execute(text)
    for part in parts:
        whole.push("S", part)
    whole.settle()
    for part in parts:
        site = open_here("pieces")
        if not site.catalog.definitions:
            site.execute(text)
        site.push("S", part)
        site.settle()
        found = said(site, "q1")
        site.close()
    assert found == said(whole, "q1")
    assert len(found) == 11


def test_what_was_pushed_before_a_restart_is_ticked_over_after_it(
    open_here: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = open_here()
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S")
    site.settle()
    monkeypatch.setattr(site.engine, "tick_only", lambda **_: None)
    site.push("S", rows((1, 1), (2, 2)))
    site.close()
    again = open_here()
    again.settle()
    assert said(again, "q") == [(1, "+", 1)]


def test_a_bare_query_keeps_its_name(open_here: OpenSite) -> None:
    site = open_here()
    site.execute(S + "SELECT a FROM S; SELECT a + 1 FROM S")
    site.stop("q1")
    site.close()
    assert [q.name for q in open_here().queries()] == ["q2"]


def test_statements_that_name_things_in_quotes_survive(open_here: OpenSite) -> None:
    site = open_here()
    site.execute('CREATE STREAM "my stream" (a INTEGER) TIMESTAMP BY ts')
    site.execute('CREATE QUERY "a ""b""" AS SELECT a FROM "my stream"')
    site.close()
    again = open_here()
    assert [q.name for q in again.queries()] == ['a "b"']
    again.stop('a "b"')
    assert again.queries() == []


def test_a_stream_that_is_dropped_and_made_again_starts_from_nothing(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    site.push("S", rows((50, 1), (60, 2)))
    site.push("S", pl.DataFrame({"ts": ["?"], "a": [1]}))
    site.settle()
    site.execute(
        "DROP QUERY q; DROP STREAM S; CREATE STREAM S (b VARCHAR) TIMESTAMP BY ts;"
        "CREATE QUERY q AS SELECT b FROM S [Range 100]"
    )
    assert (site.streams()[0].arrived, site.streams()[0].rejected) == (0, 0)
    site.push("S", pl.DataFrame({"ts": [1, 2], "b": ["x", "y"]}))
    site.settle()
    assert said(site, "q") == [(1, "+", "x")]


def test_a_query_that_comes_later_says_what_it_finds_at_its_start(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    site.push("S", rows((1, 1), (5, 2)))
    site.settle()
    site.execute("CREATE QUERY late AS SELECT a FROM S [Range 100]")
    site.push("S", rows((8, 3), (9, 4)))
    site.settle()
    assert said(site, "late") == [(5, "+", 1), (5, "+", 2), (8, "+", 3)]
    (status,) = [q for q in site.queries() if q.name == "late"]
    assert status.started == 5


def test_tuples_are_only_pushed_to_streams_without_a_source(site: Site) -> None:
    site.execute(
        "CREATE STREAM Bid (itemID BIGINT) TIMESTAMP BY timestamp TIMESTAMP "
        "FROM 'generator:auctions/Bid' OPTIONS (rate '1000', limit '10', speed '0')"
    )
    with pytest.raises(WrongUse, match="fed from 'generator:auctions/Bid'"):
        site.push("Bid", pl.DataFrame({"itemID": [1], "timestamp": [1]}))
    with pytest.raises(Unknown, match=r"no stream Bit; did you mean Bid\?"):
        site.push("Bit", pl.DataFrame())


def test_a_source_feeds_its_stream_to_the_end(site: Site) -> None:
    site.execute(
        "CREATE STREAM Bid (itemID BIGINT) TIMESTAMP BY timestamp TIMESTAMP "
        "FROM 'generator:auctions/Bid' OPTIONS (rate '1000', limit '5000', speed '0');"
        "CREATE QUERY n AS SELECT COUNT(*) AS n FROM Bid"
    )
    for page in site.results("n", follow=True, timeout_s=20):
        last = list(page.changes())[-1]
    assert last.row == (5000,)
    assert site.streams()[0].state == "ended"
    assert site.queries()[0].state == "finished"


def test_a_source_that_can_not_be_opened_is_refused_with_the_whole_script(site: Site) -> None:
    with pytest.raises(SourceError, match="has no column x"):
        site.execute(
            S + "CREATE STREAM B (x BIGINT) TIMESTAMP BY timestamp FROM 'generator:auctions/Bid'"
        )
    with pytest.raises(SourceError, match="there is no option"):
        site.execute(
            "CREATE STREAM B (itemID BIGINT) TIMESTAMP BY timestamp FROM 'generator:auctions/Bid' "
            "OPTIONS (sped '2')"
        )
    assert site.streams() == []


def test_a_source_that_fails_is_seen_and_opened_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Flaky:
        left = 2

        def run(self, feed: Feed) -> None:
            if self.left:
                self.left -= 1
                raise ConnectionError("gone for a moment")
            feed.push(rows((1, 1), (2, 2)))
            feed.finish()

    monkeypatch.setattr("thalweg.engine.site.feeds._SOURCE_RETRIES_S", (0.3,))
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S")
    site.feed("S", Flaky())
    time.sleep(0.1)
    (status,) = site.streams()
    assert (status.state, status.error) == ("failing", "ConnectionError: gone for a moment")
    assert len([c for p in site.results("q", follow=True, timeout_s=10) for c in p.changes()]) == 2
    assert site.streams()[0].error is None


def test_what_a_dropped_query_kept_goes_though_others_go_on(site: Site) -> None:
    site.execute(
        S + "CREATE QUERY n AS SELECT COUNT(*) AS n FROM S;"
        "CREATE QUERY dropped AS SELECT a, COUNT(*) AS n FROM S GROUP BY a"
    )
    site.push("S", pl.DataFrame({"ts": range(500), "a": range(500)}))
    site.settle()
    assert sum(s.rows for s in site.engine.manifest) > 400
    site.stop("dropped")
    site.push("S", rows((600, 1)))
    site.settle()
    assert sum(s.rows for s in site.engine.manifest) < 10
    assert said(site, "n")[-1] == (499, "+", 500)


# --- reading


def test_reading_goes_on_behind_a_position(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Now]")
    site.push("S", rows((1, 10), (2, 20), (3, 30), (4, 40)))
    site.settle()
    site.push("S", rows((9, 0)))
    site.settle()
    everything = [id_ for page in site.results("q") for id_ in page.ids()]
    assert len(everything) == len(set(everything)) == 8
    for i, id_ in enumerate(everything):
        rest = [x for page in site.results("q", id_) for x in page.ids()]
        assert rest == everything[i + 1 :]


def test_following_goes_on_until_the_query_is_stopped(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S")
    found: list[tuple] = []
    thread = threading.Thread(
        target=lambda: found.extend(
            c.row for page in site.results("q", follow=True) for c in page.changes()
        )
    )
    thread.start()
    for i in range(5):
        site.push("S", rows((i, i)))
        site.settle()
    deadline = time.monotonic() + 120
    while len(found) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    site.stop("q")
    thread.join(60)
    assert not thread.is_alive()
    assert found == [(0,), (1,), (2,), (3,)]


def test_results_that_are_no_longer_kept_are_not_passed_over_in_silence(
    open_here: OpenSite,
) -> None:
    site = open_here(retained_ticks=2)
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S")
    for i in range(6):
        site.push("S", rows((i, i)))
        site.settle()
    with pytest.raises(SiteError, match="no longer kept"):
        site.results("q", Position(1, 0, 0))
    kept = [id_ for page in site.results("q") for id_ in page.ids()]
    assert kept == [Position(1, 3, 0), Position(1, 4, 0)]
    files = {p.name for p in (site.engine.folder / "segments").iterdir()}
    held = site.engine.store.outputs.files_of_state()
    assert sorted(int(name.split("-")[0]) for name in held & files) == [5, 6]
    site.results("q", Position(1, 5))


def test_the_tail_has_the_last_rows(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S")
    for i in range(6):
        site.push("S", rows((i, i)))
        site.settle()
    assert [c.row for p in site.tail("q", 2) for c in p.changes()] == [(3,), (4,)]


# --- the folder


def test_one_process_has_the_folder(open_here: OpenSite) -> None:
    open_here()
    with pytest.raises(SiteError, match="is in use by process"):
        open_here()


def test_a_start_that_fails_leaves_the_folder_free(
    open_here: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = open_here()
    site.execute(S)
    site.close()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("thalweg.engine.site.book.Book.stages", full)
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                open_here()
    open_here()


def test_files_of_tuples_that_nobody_lists_are_removed(open_here: OpenSite) -> None:
    site = open_here()
    stray = site.engine.landing.folder.here / "S-0-0.arrow"
    stray.write_bytes(b"half a batch")
    site.close()
    open_here()
    assert not stray.exists()


def test_a_script_is_let_in_between_ticks_that_never_rest(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S")
    stop = threading.Event()

    def feed() -> None:
        for i in range(100_000):
            if stop.is_set():
                return
            site.push("S", rows((i, i)))

    feeder = threading.Thread(target=feed)
    feeder.start()
    began = time.monotonic()
    for i in range(20):
        site.execute(f"CREATE QUERY late{i} AS SELECT a FROM S WHERE a > {i}")
    took = time.monotonic() - began
    stop.set()
    feeder.join()
    assert took < 10


@pytest.mark.parametrize("kind", ["STREAM", "TABLE"])
def test_a_csv_file_without_a_column_is_refused_when_it_is_named(
    site: Site, tmp_path: Path, kind: str
) -> None:
    file = tmp_path / "trips.csv"
    file.write_text("ts,zone\n1,north\n")
    stamp = " TIMESTAMP BY ts" if kind == "STREAM" else ""
    with pytest.raises(SourceError, match="has no column zon; its first line has ts, zone"):
        site.execute(f"CREATE {kind} Trip (zon VARCHAR){stamp} FROM '{file}'")
    assert site.streams() == []
    file.write_text("")  # its first line may still be written
    site.execute(f"CREATE {kind} Trip (zon VARCHAR){stamp} FROM '{file}'")


def test_rows_are_told_before_files_are_removed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removing files can take longer than a tick; who waits for its rows does not wait for that."""
    site.execute(
        S + "CREATE STREAM T (a INTEGER) TIMESTAMP BY ts;"
        "CREATE QUERY q AS SELECT ISTREAM S.a FROM S [Range 5], T [Now] WHERE S.a = T.a"
    )
    site.push("S", rows((1, 7)))
    site.push("T", rows((2, 8)))
    site.settle()
    told, real = threading.Event(), Folder.remove
    waited: list[bool] = []

    def remove(folder: Folder, names: Iterable[str]) -> None:
        gone = list(names)
        if gone and folder.path.endswith("segments"):
            waited.append(told.wait(60))
        real(folder, gone)

    monkeypatch.setattr(Folder, "remove", remove)
    site.push("S", rows((100, 9), (101, 0)))
    site.push("T", rows((100, 9), (101, 0)))
    for page in site.results("q", follow=True, timeout_s=30):
        assert [c.row for c in page.changes()] == [(9,)]
        told.set()
        break
    site.settle()
    assert waited
    assert all(waited)
