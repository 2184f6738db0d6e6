"""Sites in a temporary folder, in this process: no Spark, no waiting for disks."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from thalweg.cql import compile_script
from thalweg.engine.site import IN_PROCESS, Site, open_site
from thalweg.engine.site.settings import SiteSettings

OpenSite = Callable[..., Site]


@pytest.fixture
def open_here(tmp_path: Path) -> Iterator[OpenSite]:
    opened: list[Site] = []

    def open_(folder: str = "data", **settings: Any) -> Site:
        chosen = SiteSettings(
            **{"durable": False, "tick_interval_s": 0.0, "base_folder": tmp_path, **settings}
        )
        site = open_site(tmp_path / folder, compile_script, master=IN_PROCESS, settings=chosen)
        opened.append(site)
        return site

    yield open_
    for site in opened:
        site.close()


@pytest.fixture
def site(open_here: OpenSite) -> Site:
    return open_here()


def rows(*stamped: tuple[int, int]) -> pl.DataFrame:
    """Tuples (ts, a) for a stream S (a INTEGER) TIMESTAMP BY ts."""
    return pl.DataFrame(
        {"ts": [ts for ts, _ in stamped], "a": [a for _, a in stamped]},
        schema={"ts": pl.Int64, "a": pl.Int64},
    )


def said(site: Site, query: str) -> list[tuple]:
    """All that a query has said: (ts, op, *row)."""
    return [(c.ts, c.op, *c.row) for page in site.results(query) for c in page.changes()]
