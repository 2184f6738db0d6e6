import sqlite3
import tarfile
import threading
from pathlib import Path

import polars as pl
import pytest
from tests.engine.site.conftest import OpenSite, rows, said

from thalweg.engine.site import Site
from thalweg.engine.site.backup import BackupError, back_up_folder, restore

SCRIPT = """
CREATE STREAM S (a INTEGER) TIMESTAMP BY ts;
CREATE QUERY q AS SELECT a FROM S [Range 3];
CREATE QUERY n AS SELECT COUNT(*) AS n FROM S [Range 3];
"""


def test_a_running_service_is_brought_back_on_an_empty_machine(
    site: Site, open_here: OpenSite, tmp_path: Path
) -> None:
    site.execute(SCRIPT)
    site.push("S", rows((1, 1), (2, 2)), batch_id="one")
    site.settle()
    site.push("S", pl.DataFrame({"ts": ["x"], "a": [1]}))  # rejected
    site.back_up(tmp_path / "b.tar.gz")
    site.push("S", rows((9, 9)))  # not in the backup
    site.settle()
    site.close()
    restore(tmp_path / "b.tar.gz", tmp_path / "elsewhere" / "data")
    again = open_here(folder=tmp_path / "elsewhere" / "data")
    assert said(again, "q") == [(1, "+", 1)]
    assert [s.rejected for s in again.streams()] == [1]
    assert again.push("S", rows((1, 1), (2, 2)), batch_id="one").repeated
    again.push("S", rows((5, 5)))
    again.settle()
    assert said(again, "q") == [(1, "+", 1), (2, "+", 2)]


def test_a_backup_of_a_busy_service_holds_every_acknowledged_tuple(
    site: Site, open_here: OpenSite, tmp_path: Path
) -> None:
    site.execute(SCRIPT)
    acknowledged: list[int] = []
    stop = threading.Event()

    def pushing() -> None:
        for i in range(10_000):
            if stop.is_set():
                return
            site.push("S", rows((i, i)))
            acknowledged.append(i)

    thread = threading.Thread(target=pushing)
    thread.start()
    found = []
    for number in range(3):
        while len(acknowledged) < 30 * (number + 1):
            pass
        before = len(acknowledged)
        site.back_up(tmp_path / f"{number}.tar.gz")
        found.append(before)
    stop.set()
    thread.join()
    site.close()
    for number, before in enumerate(found):
        folder = tmp_path / f"data-{number}"
        restore(tmp_path / f"{number}.tar.gz", folder)
        again = open_here(folder=folder)
        again.finish("S")
        again.settle()
        plus = [row for _, op, row in said(again, "q") if op == "+"]
        assert plus == list(range(len(plus)))  # none is missing, none is there twice
        assert len(plus) >= before
        again.close()


def test_a_stopped_data_directory_is_backed_up_and_a_used_one_is_not(
    site: Site, open_here: OpenSite, tmp_path: Path
) -> None:
    site.execute(SCRIPT)
    with pytest.raises(Exception, match="is in use"):
        back_up_folder(site.engine.folder, tmp_path / "b.tar.gz")
    site.close()
    back_up_folder(site.engine.folder, tmp_path / "b.tar.gz")
    restore(tmp_path / "b.tar.gz", tmp_path / "copy")
    assert [q.name for q in open_here(folder=tmp_path / "copy").queries()] == ["q", "n"]


def test_nothing_is_written_over(site: Site, tmp_path: Path) -> None:
    site.back_up(tmp_path / "b.tar.gz")
    with pytest.raises(BackupError, match="is not empty"):
        restore(tmp_path / "b.tar.gz", site.engine.folder)


@pytest.mark.parametrize("kind", ["text", "cut", "empty", "a file is missing"])
def test_what_is_no_whole_backup_is_refused(kind: str, site: Site, tmp_path: Path) -> None:
    site.execute(SCRIPT)
    site.push("S", rows((1, 1)))
    site.back_up(tmp_path / "whole.tar.gz")
    broken = tmp_path / "broken.tar.gz"
    match kind:
        case "text":
            broken.write_text("this is no backup")
        case "cut":
            whole = (tmp_path / "whole.tar.gz").read_bytes()
            broken.write_bytes(whole[: len(whole) // 2])
        case "empty":
            tarfile.open(broken, "w:gz").close()
        case _:
            restore(tmp_path / "whole.tar.gz", tmp_path / "copy")
            with sqlite3.connect(tmp_path / "copy" / "book.sqlite") as book:
                book.execute("INSERT INTO segments VALUES ('gone.arrow', 0, x'')")
            with tarfile.open(broken, "w:gz") as archive:
                archive.add(tmp_path / "copy", arcname=".")
    with pytest.raises(BackupError):
        restore(broken, tmp_path / "new")
    assert not (tmp_path / "new").exists()
