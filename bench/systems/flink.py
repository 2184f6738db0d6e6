"""Flink SQL: all queries as one STATEMENT SET on a local cluster, from CSV files to CSV files.

PyFlink's pins clash with ours, so it lives in an environment of its own (`make flink`) and runs in
a process of its own, `flink_job`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from bench.measure import PeakMemory
from bench.standing import Standing
from bench.systems.outcome import Outcome, Unable, as_said

ROOT = Path(__file__).parents[2]
INTERPRETER = "THALWEG_FLINK_PYTHON"
_TYPES = {"BIGINT": pl.Int64, "DOUBLE": pl.Float64}


def interpreter() -> Path:
    """The Python that has PyFlink; raises Unable."""
    python = Path(os.environ.get(INTERPRETER, ROOT / ".venv-flink" / "bin" / "python"))
    if not python.exists():
        raise Unable(
            "PyFlink is not installed: run `make flink`, "
            f"or name a Python that has it in {INTERPRETER}"
        )
    return python


def run(
    queries: Sequence[Standing], data: Path, cores: int, folder: Path, limit_s: float
) -> Outcome:
    folder.mkdir(parents=True)
    job = {
        "queries": [
            {"name": q.name, "columns": q.columns, "select": q.flink, "out": str(folder / q.name)}
            for q in queries
        ],
        "data": str(data),
        "cores": cores,
        "checkpoints": str(folder / ".checkpoints"),
    }
    (folder / "job.json").write_text(json.dumps(job))
    with PeakMemory() as memory:
        measured = _run_job(folder, limit_s)
    said = [_said(q, folder / q.name) for q in queries]
    return Outcome(**measured, said=as_said(said), peak_bytes=memory.peak_bytes)


def _run_job(folder: Path, limit_s: float) -> dict[str, float]:
    command = [interpreter(), "-m", "bench.systems.flink_job", folder / "job.json"]
    log = folder / "log.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=output,
            start_new_session=True,  # its JVM goes with it
        )
        try:
            told, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise Unable(f"stopped after {limit_s:.0f} s") from None
        finally:
            _end(process)
    if process.returncode:
        raise Unable(f"Flink failed: {_reason(log)}")
    return dict(json.loads(told.splitlines()[-1]))


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _reason(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    causes = [line.strip() for line in lines if "Caused by:" in line or "Error" in line]
    return (causes or lines or ["it said nothing"])[-1]


def _said(query: Standing, folder: Path) -> pl.DataFrame:
    files = [f for f in sorted(folder.glob("*")) if not f.name.startswith(".") and f.stat().st_size]
    if not files:
        return pl.DataFrame({"query": [query.name], "rows": [0], "items": [0]})
    schema = {name: _TYPES[type_] for name, type_ in query.columns.items()}
    rows = pl.concat(pl.read_csv(f, has_header=False, schema=schema) for f in files)
    said = {"query": [query.name], "rows": [rows.height], "items": [rows["itemID"].sum()]}
    return pl.DataFrame(said)
