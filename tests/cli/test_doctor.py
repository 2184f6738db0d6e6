import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from thalweg.cli.main import app


def findings(*arguments: str) -> tuple[int, dict[str, dict]]:
    done = CliRunner().invoke(app, ["doctor", "--json", *arguments])
    return done.exit_code, {f["what"]: f for f in json.loads(done.stdout)}


def test_a_line_for_each_thing(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["doctor", "--data-dir", str(tmp_path), "--port", "0"])
    assert done.exit_code == 0
    assert [line.split()[1] for line in done.stdout.splitlines()] == [
        "Python",
        "Java",
        "packages",
        "memory",
        "data",
        "port",
    ]


def test_a_port_that_is_taken_is_a_warning(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, found = findings("--data-dir", str(tmp_path), "--port", port)
    assert code == 0
    assert found["port"]["verdict"] == "warning"
    assert "--port" in found["port"]["advice"]


def test_a_folder_that_can_not_be_written_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, found = findings("--data-dir", str(tmp_path / "file"), "--port", "0")
    assert code == 1
    assert found["data dir"]["verdict"] == "failed"


def test_no_java_fails_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, found = findings("--data-dir", str(tmp_path), "--port", "0")
    assert code == 1
    assert "JAVA_HOME" in found["Java"]["advice"]


@pytest.mark.timeout(300)
def test_a_master_is_looked_at_from_its_own_tasks(tmp_path: Path) -> None:
    """In a process of its own, which has its own Spark session."""
    run = [sys.executable, "-m", "thalweg.cli", "doctor", "--json", "--master", "local[2]"]
    where = ["--data-dir", str(tmp_path / "data"), "--port", "0"]
    done = subprocess.run([*run, *where], capture_output=True, text=True, timeout=290, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {f["what"]: f for f in json.loads(done.stdout)}
    assert list(found)[-6:] == [
        "master",
        "slots",
        "Python there",
        "packages there",
        "shared dir",
        "way back",
    ]
    assert found["slots"]["found"].startswith("2 tasks at once")
    assert {f["verdict"] for f in found.values()} <= {"ok", "warning"}
    assert not list((tmp_path / "data").iterdir())


def test_a_master_that_is_none_fails_with_the_reason(tmp_path: Path) -> None:
    code, found = findings("--data-dir", str(tmp_path), "--port", "0", "--master", "sc://h:1")
    assert code == 1
    assert "Spark Connect" in found["master"]["found"]


def test_a_store_is_tried_and_left_as_it_was(tmp_path: Path) -> None:
    store = (tmp_path / "store").as_uri()
    code, found = findings("--data-dir", str(tmp_path), "--port", "0", "--store", store)
    assert code == 0
    assert list(found)[-3:] == ["store", "conditional put", "put and get"]
    assert {f["verdict"] for f in list(found.values())[-3:]} == {"ok"}
    assert not [p for p in (tmp_path / "store").rglob("*") if p.is_file()]


def test_no_store_fails_with_what_to_do(tmp_path: Path) -> None:
    code, found = findings("--data-dir", str(tmp_path), "--port", "0", "--store", "s3:/bucket")
    assert code == 1
    assert "s3://bucket/folder" in found["store"]["advice"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_with_a_store_executors_are_asked_for_it_and_for_no_folder(tmp_path: Path) -> None:
    run = [sys.executable, "-m", "thalweg.cli", "doctor", "--json", "--master", "local[2]"]
    where = ["--data-dir", str(tmp_path / "data"), "--port", "0"]
    where += ["--store", (tmp_path / "store").as_uri()]
    done = subprocess.run([*run, *where], capture_output=True, text=True, timeout=290, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {f["what"]: f for f in json.loads(done.stdout)}
    assert found["store there"]["verdict"] == "ok"
    assert "shared dir" not in found
    assert not [p for p in (tmp_path / "store").rglob("*") if p.is_file()]
