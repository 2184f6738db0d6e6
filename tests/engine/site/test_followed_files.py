"""OPTIONS (watch 'true') on one file: lines are taken as they are appended."""

import time
from pathlib import Path

import pytest
from tests.engine.site.conftest import OpenSite, said

from thalweg.engine.site import Site
from thalweg.engine.sources.errors import SourceError

Q = "CREATE QUERY q AS SELECT a FROM S [Unbounded]"


def stream(file: str) -> str:
    return f"CREATE STREAM S (a INTEGER) TIMESTAMP BY ts FROM '{file}' OPTIONS (watch 'true');{Q}"


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def arrived(site: Site, count: int) -> bool:
    until = time.monotonic() + 120
    while site.streams()[0].arrived < count and time.monotonic() < until:
        time.sleep(0.02)
    site.settle()
    return site.streams()[0].arrived == count


@pytest.mark.parametrize(
    ("file", "head", "line"),
    [("s.csv", "ts,a\n", "{0},{1}\n"), ("s.jsonl", "", '{{"ts":{0},"a":{1}}}\n')],
)
def test_lines_are_taken_as_they_come_also_after_a_restart(
    open_here: OpenSite, tmp_path: Path, file: str, head: str, line: str
) -> None:
    path = tmp_path / file
    path.write_text(head + line.format(1, 10) + line.format(2, 20))
    site = open_here()
    site.execute(stream(file))
    assert arrived(site, 2)
    append(path, line.format(3, 30) + line.format(4, 40)[:3])
    assert arrived(site, 3)
    site.close()
    append(path, line.format(4, 40)[3:])
    site = open_here()
    assert arrived(site, 4)
    append(path, line.format(5, 50))
    assert arrived(site, 5)
    assert said(site, "q") == [(t, "+", 10 * t) for t in (1, 2, 3, 4)]


def test_a_file_that_was_cut_is_told(open_here: OpenSite, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("ts,a\n1,10\n2,20\n")
    site = open_here()
    site.execute(stream("s.csv"))
    assert arrived(site, 2)
    path.write_text("ts,a\n")
    until = time.monotonic() + 120
    while site.streams()[0].error is None and time.monotonic() < until:
        time.sleep(0.02)
    assert "may only grow" in (site.streams()[0].error or "")


def test_what_is_written_whole_can_not_be_followed(site: Site, tmp_path: Path) -> None:
    (tmp_path / "s.parquet").write_bytes(b"PAR1")
    with pytest.raises(SourceError, match="is written whole"):
        site.execute(stream("s.parquet"))
