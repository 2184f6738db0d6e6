"""What others hold is kept: a query can begin at an instant that has long passed."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from thalweg.cql import compile_script
from thalweg.engine.shared.registering import Past
from thalweg.engine.site import IN_PROCESS, Site, open_site
from thalweg.engine.site.publications import pieces
from thalweg.engine.site.settings import SiteSettings
from thalweg.plan.windows import BEGINNING

STREAMS = """
CREATE STREAM S (k BIGINT, v BIGINT) TIMESTAMP BY ts BIGINT;
CREATE STREAM T (k BIGINT) TIMESTAMP BY ts BIGINT;
CREATE RELATION R (k BIGINT, n BIGINT) TIMESTAMP BY ts BIGINT;
"""
QUERIES = {
    "joined": "SELECT S.k, S.v FROM S [Range 20], T [Range 5] WHERE S.k = T.k",
    "counted": "SELECT k, COUNT(*) AS n, MAX(v) AS top FROM S [Range 12 SLIDE 4] GROUP BY k",
    "hopping": "SELECT k, COUNT(*) AS n FROM S [Hop 9 EVERY 3] GROUP BY k",
    "related": "SELECT S.v, R.n FROM S [Range 10], R WHERE S.k = R.k",
    "streamed": "SELECT ISTREAM S.k, R.n FROM S [Now], R WHERE S.k = R.k",
}
ENDS, STEP, REACH = 120, 10, 25


def opened(folder: Path) -> Site:
    chosen = SiteSettings(durable=False)
    return open_site(folder, compile_script, master=IN_PROCESS, settings=chosen)


def feed(site: Site, low: int) -> None:
    drawn = random.Random(low)

    def push(stream: str, *rows: tuple[object, ...]) -> None:
        columns = [f.name for f in site.stream(stream).fields]
        columns = ["op", *columns, "ts"] if stream == "R" else [*columns, "ts"]
        site.push(stream, pl.DataFrame(list(rows), schema=columns, orient="row"))

    instants = range(low, low + STEP)
    push("S", *((drawn.randrange(4), t, t) for t in instants))
    push("T", *((drawn.randrange(4), t) for t in instants))
    push(
        "R",
        *(
            row
            for t in instants
            for row in (("+", t % 4, t, t), ("-", t % 4, t - 7, t))
            if t > 6 or row[0] == "+"
        ),
    )
    site.settle()


def said(site: Site, query: str, since: int) -> list[tuple[object, ...]]:
    """After an instant, up to the end."""
    found = [r for p in pieces(site.engine, site.query(query), since) for r in p.rows.rows()]
    return [r for r in found if since < r[0] < ENDS - 1]


@pytest.mark.parametrize(("begins", "restarts"), [(BEGINNING, False), (37, True), (104, False)])
def test_a_query_that_begins_in_the_past_says_what_it_would_have_said(
    tmp_path: Path, begins: int, restarts: bool
) -> None:
    site = opened(tmp_path)
    site.execute(STREAMS)
    whole = "; ".join(f"CREATE QUERY {n} AS {text}" for n, text in QUERIES.items())
    site.execute(whole)
    site.engine.holds.write("reader", dict.fromkeys("STR", BEGINNING))
    for low in range(0, ENDS, STEP):
        feed(site, low)
        held = BEGINNING if begins == BEGINNING else min(begins, low) - REACH
        site.engine.holds.write("reader", dict.fromkeys("STR", held))
        if low == 50:
            site.execute("DROP QUERY joined")  # and nothing reads T any more
    if restarts:
        site.close()
        site = opened(tmp_path)
    again = "; ".join(f"CREATE QUERY {n}2 AS {text}" for n, text in QUERIES.items())
    site.execute(again, pasts={s: Past(begins) for s in "STR"})
    site.settle()
    for name in QUERIES:
        run = site.engine.roster_entry(f"{name}2")
        assert run is not None
        assert run.started == (None if begins == BEGINNING else begins)
        assert not run.gaps
    for name in QUERIES.keys() - {"joined"}:
        first = said(site, name, begins)
        assert said(site, f"{name}2", begins) == first
        assert len(first) > 5
    assert len(said(site, "joined2", begins)) > 5
    site.close()


def test_what_nobody_holds_any_more_goes(tmp_path: Path) -> None:
    site = opened(tmp_path)
    site.execute(STREAMS)
    site.engine.holds.write("one", {"S": BEGINNING})
    site.engine.holds.write("other", {"S": 30})
    for low in range(0, ENDS, STEP):
        feed(site, low)
    assert site.engine.store.inputs.complete_from("S", ()) == BEGINNING
    site.engine.holds.write("one", {})
    assert site.engine.holds.least() == {"S": 30}
    feed(site, ENDS)
    assert site.engine.store.inputs.complete_from("S", ()) == 30
    site.close()
