"""How the process that has PyFlink is dealt with; a script stands for it."""

import time
from pathlib import Path

import pytest

from bench.standing import Standing
from bench.systems import flink
from bench.systems.outcome import Unable

QUERIES = [Standing("q0", None, ("O.price < 1",)), Standing("q1", 2, ("O.price < 1",))]


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def stand_in(script: str) -> None:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv(flink.INTERPRETER, str(path))

    return stand_in


def run(tmp_path: Path, limit_s: float = 60.0):
    return flink.run(QUERIES, tmp_path / "csv", 2, tmp_path / "out", limit_s)


def test_rows_are_counted_from_the_files_that_are_finished(python, tmp_path: Path):
    out = tmp_path / "out"
    python(
        f"mkdir {out}/q1; printf '7,1.5,3\\n8,0.5,4\\n' > {out}/q1/part-0; : > {out}/q1/part-1\n"
        f"printf '9,1.0,1\\n' > {out}/q1/.part-2.inprogress\n"
        'echo some noise; echo \'{"start_s": 3.0, "seconds": 2.0, "cpu_s": 1.5}\''
    )
    outcome = run(tmp_path)
    assert outcome.said.rows() == [("q1", 2, 15)]
    assert (outcome.start_s, outcome.seconds, outcome.cpu_s) == (3.0, 2.0, 1.5)


def test_a_run_is_stopped_with_all_its_processes_when_its_time_is_over(python, tmp_path: Path):
    python(f"sleep 300 & echo $! > {tmp_path}/child; wait")
    with pytest.raises(Unable, match="stopped after 1 s"):
        run(tmp_path, limit_s=1.0)
    child = (tmp_path / "child").read_text().strip()
    stat = Path(f"/proc/{child}/stat")

    def is_gone() -> bool:
        return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"

    for _ in range(500):  # a busy machine takes its time to end what was killed
        if is_gone():
            return
        time.sleep(0.02)
    pytest.fail(f"process {child} goes on")


def test_a_failure_is_told_with_its_cause(python, tmp_path: Path):
    python("echo 'Caused by: java.lang.OutOfMemoryError' >&2; exit 1")
    with pytest.raises(Unable, match="OutOfMemoryError"):
        run(tmp_path)


def test_without_pyflink_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv(flink.INTERPRETER, str(tmp_path / "none"))
    with pytest.raises(Unable, match="make flink"):
        run(tmp_path)
