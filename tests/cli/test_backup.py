import sqlite3
import time
from pathlib import Path

from tests.api.conftest import LiveService
from tests.cli.conftest import Run

SCRIPT = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE QUERY q AS SELECT a FROM S"


def test_a_running_service_is_written_to_a_file_and_comes_back_elsewhere(
    service: LiveService, run: Run, tmp_path: Path
) -> None:
    run("submit", "-e", SCRIPT)
    service.http.post("/streams/S/tuples", json=[{"ts": 1, "a": 7}, {"ts": 2, "a": 8}])
    service.site.settle()
    target = tmp_path / "b.tar.gz"
    assert run("backup", str(target)).stdout.strip() == str(target)
    for _ in range(1000):  # nothing is left behind, once the answer has gone out
        if not (left := list(service.site.engine.folder.glob(".backup-*"))):
            break
        time.sleep(0.01)
    assert not left
    result = run("restore", str(target), "--data-dir", str(tmp_path / "new"))
    assert (result.exit_code, result.stdout.strip()) == (0, str(tmp_path / "new"))
    again = LiveService(tmp_path / "new")
    rows = again.http.get("/queries/q/results?format=json").json()["rows"]
    again.close()
    assert [(r["id"], r["row"]) for r in rows] == [("1.1.0", {"a": 7})]


def test_what_is_there_is_not_written_over(run: Run, tmp_path: Path) -> None:
    (tmp_path / "b.tar.gz").write_text("mine")
    result = run("backup", str(tmp_path / "b.tar.gz"))
    assert result.exit_code == 2
    assert "exists already" in result.stderr
    assert (tmp_path / "b.tar.gz").read_text() == "mine"


def test_a_service_that_is_not_there_is_said_so(tmp_path: Path, run: Run) -> None:
    result = run("backup", str(tmp_path / "b.tar.gz"), "--url", "http://127.0.0.1:9")
    assert result.exit_code == 3
    assert "start one with `thalweg dev`" in result.stderr
    assert not list(tmp_path.glob("*.tar.gz"))


def test_a_stopped_data_directory_is_backed_up_by_its_path(
    service: LiveService, run: Run, tmp_path: Path
) -> None:
    used = run("backup", str(tmp_path / "b.tar.gz"), "--data-dir", str(tmp_path / "data"))
    assert used.exit_code == 1
    assert "is in use" in used.stderr
    service.close()
    found = run("backup", str(tmp_path / "b.tar.gz"), "--data-dir", str(tmp_path / "data"))
    assert found.exit_code == 0


def test_what_is_no_backup_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no backup")
    result = run("restore", str(tmp_path / "x"), "--data-dir", str(tmp_path / "new"))
    assert result.exit_code == 1
    assert "can't be read as a backup" in result.stderr


def test_upgrade_says_what_it_did(service: LiveService, run: Run, tmp_path: Path) -> None:
    service.close()
    result = run("upgrade", "--data-dir", str(tmp_path / "data"))
    assert result.exit_code == 0
    assert "has this version's format already" in result.stderr
    with sqlite3.connect(tmp_path / "data" / "book.sqlite") as book:
        book.execute("UPDATE meta SET value = '4' WHERE name = 'format'")
    result = run("upgrade", "--data-dir", str(tmp_path / "data"))
    assert result.exit_code == 1
    assert "too old to be migrated" in result.stderr
    result = run("upgrade", "--data-dir", str(tmp_path / "nothing"))
    assert result.exit_code == 1
    assert not (tmp_path / "nothing").exists()
