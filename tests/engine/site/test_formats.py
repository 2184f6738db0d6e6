"""Data directories of earlier versions: they open, or are migrated, and their queries go on.

`formats/format-N.tar.gz` is a backup that the first version with format N has written in the middle
of a run. Never write one again: what it holds is what is out there. A new format gets a new file:

    python -m tests.engine.site.test_formats
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
import pytest

from thalweg.cql import compile_script
from thalweg.engine.shared.state.schema import FORMAT
from thalweg.engine.shared.state.upgrade import upgrade
from thalweg.engine.site import IN_PROCESS, Site, open_site
from thalweg.engine.site.backup import restore
from thalweg.engine.site.settings import SiteSettings

FOLDER = Path(__file__).parent / "formats"
SCRIPT = """
CREATE STREAM S (k BIGINT, v DOUBLE, t VARCHAR) TIMESTAMP BY ts BIGINT LATENESS 2;
CREATE STREAM "odd/ name" (k BIGINT, d DECIMAL(10, 2)) TIMESTAMP BY ts BIGINT;
CREATE RELATION R (k BIGINT, name VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE VIEW Dear AS SELECT k, v FROM S [Range 20] WHERE v > 2;
CREATE QUERY plain AS SELECT k, t FROM S [Range 9] WHERE v > 1;
CREATE QUERY plain2 AS SELECT k FROM S [Range 12] WHERE v > 3;
CREATE QUERY joined AS SELECT S.k, S.v, o.d FROM S [Range 15], "odd/ name" [Range 7] o
    WHERE S.k = o.k;
CREATE QUERY joined2 AS SELECT S.k FROM S [Range 9], "odd/ name" [Range 9] o
    WHERE S.k = o.k AND S.v > 2;
CREATE QUERY counted AS SELECT k, COUNT(*) AS n, AVG(v) AS mean FROM S [Range 10] WHERE v > 1
    GROUP BY k;
CREATE QUERY counted2 AS SELECT k, COUNT(*) AS n, AVG(v) AS mean FROM S [Range 10] WHERE v > 2
    GROUP BY k;
CREATE QUERY slid AS SELECT k, MAX(v) AS peak FROM S [Range 10 Slide 5] GROUP BY k;
CREATE QUERY everything AS SELECT COUNT(*) AS n FROM S [Range 3];
CREATE QUERY latest AS RSTREAM SELECT k FROM S [Partition By k Rows 2];
CREATE QUERY named AS SELECT S.k, R.name FROM S [Range 10], R WHERE S.k = R.k;
CREATE QUERY without AS SELECT k FROM S [Range 10]
    WHERE NOT EXISTS (SELECT 1 FROM "odd/ name" [Range 5] o WHERE o.k = S.k);
CREATE QUERY dear_keys AS SELECT DISTINCT k FROM Dear;
CREATE QUERY both AS SELECT k FROM S [Range 4] UNION SELECT k FROM "odd/ name" [Range 6];
"""
HALF, END = 30, 60


def pushed(site: Site, since: int, upto: int) -> None:
    for ts in range(since, upto):
        key = ts * 7 % 5
        site.push("S", pl.DataFrame({"ts": [ts], "k": [key], "v": [ts % 4 + 0.5], "t": [f"ü{ts}"]}))
        site.push("odd/ name", pl.DataFrame({"ts": [ts], "k": [ts % 5], "d": [f"{ts}.25"]}))
        if ts % 6 == 0:
            op, name = ("-", f"n{ts - 6}") if ts % 12 == 6 else ("+", f"n{ts}")
            site.push("R", pl.DataFrame({"ts": [ts], "k": [key], "name": [name], "op": [op]}))
        if ts % 5 == 0:
            site.settle()


def opened(folder: Path) -> Site:
    settings = SiteSettings(durable=False, tick_interval_s=0.0, base_folder=folder.parent)
    return open_site(folder, compile_script, master=IN_PROCESS, settings=settings)


def ended(site: Site) -> dict[str, list[tuple]]:
    """What every query has said, when all streams have ended."""
    for stream in ("S", "odd/ name", "R"):
        site.finish(stream)
    site.settle()
    found = {
        q.name: [
            (str(id_), c.op, *c.row)
            for page in site.results(q.name)
            for id_, c in zip(page.ids(), page.changes(), strict=True)
        ]
        for q in site.queries()
    }
    site.close()
    return found


def begun(folder: Path) -> Site:
    """A site in the middle of its run."""
    site = opened(folder)
    site.execute(SCRIPT)
    pushed(site, 0, HALF)
    site.settle()
    return site


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple]]:
    """What this version says about the same tuples without a break."""
    site = begun(tmp_path_factory.mktemp("formats") / "data")
    pushed(site, HALF, END)
    return ended(site)


@pytest.mark.parametrize("number", range(5, FORMAT + 1))
def test_a_data_directory_of_an_earlier_version_goes_on(
    number: int, expected: dict[str, list[tuple]], tmp_path: Path
) -> None:
    restore(FOLDER / f"format-{number}.tar.gz", tmp_path / "data")
    upgrade(tmp_path / "data")
    site = opened(tmp_path / "data")
    pushed(site, HALF, END)
    assert ended(site) == expected


def test_a_relation_of_an_older_data_directory_becomes_whole(tmp_path: Path) -> None:
    restore(FOLDER / "format-5.tar.gz", tmp_path / "data")
    site = opened(tmp_path / "data")
    site.execute("CREATE QUERY late AS SELECT k, name FROM R")
    pushed(site, HALF, HALF + 10)
    site.settle()
    assert list(site.content("late").tuples()) == [(0, "n0"), (3, "n24"), (4, "n12")]
    site.close()


def test_a_relation_that_an_older_version_has_not_kept_says_so(tmp_path: Path) -> None:
    """Nobody read it, so nobody has what it held."""
    site = opened(tmp_path / "data")
    site.execute("CREATE RELATION R (k BIGINT) TIMESTAMP BY ts BIGINT")
    site.push("R", pl.DataFrame({"ts": [1, 2], "k": [1, 2], "op": ["+", "+"]}))
    site.settle()
    with site.engine.store.transaction():  # as it was left then
        site.engine.store.inputs.complete_only_from({"R": 3})
        site.engine.manifest.drop(list(site.engine.manifest))
    script = site.execute("CREATE QUERY late AS SELECT k FROM R")
    (notice,) = site.notices(script.queries)
    assert notice.text == (
        "late: R is at hand from 3 on. What it held before was not kept by an older version: drop "
        "it and create it again to have it whole"
    )
    site.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        target = FOLDER / f"format-{FORMAT}.tar.gz"
        assert not target.exists(), f"{target} is out there: it may not be written again"
        FOLDER.mkdir(exist_ok=True)
        written = begun(Path(name) / "data")
        written.back_up(target)
        written.close()
