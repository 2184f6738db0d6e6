"""Pathway: all queries as one dataflow that shares by hand what they have in common, from CSV files
to a CSV file.

It lives in an environment of its own (`make pathway`) and runs in a process of its own,
`pathway_job`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.measure import PeakMemory
from bench.standing import Standing
from bench.systems.elsewhere import run_job
from bench.systems.expert import COLUMNS, Constants, said_by_number
from bench.systems.outcome import Outcome

INTERPRETER = "THALWEG_PATHWAY_PYTHON"


def run(
    queries: Sequence[Standing], data: Path, cores: int, folder: Path, limit_s: float
) -> Outcome:
    constants = Constants(queries)
    _with_headers(data, folder / "in")
    job = {
        "data": str(folder / "in"),
        "out": str(folder / "rows.csv"),
        "bin": constants.bin,
        "sellers": constants.sellers,
        "ranges": constants.ranges,
        "joins": constants.joins,
    }
    quiet = {"PATHWAY_THREADS": str(cores), "PATHWAY_PERSISTENT_STORAGE": ""}
    with PeakMemory() as memory:
        measured = run_job("Pathway", INTERPRETER, job, folder, limit_s, quiet)
    said = said_by_number(queries, folder, "rows*.csv")
    return Outcome(**measured, said=said, peak_bytes=memory.peak_bytes)


def _with_headers(data: Path, folder: Path) -> None:
    """Pathway takes the columns' names from the first line."""
    for stream, columns in COLUMNS.items():
        names = ",".join(column.split()[0] for column in columns.split(", "))
        (folder / stream).mkdir(parents=True)
        for file in sorted((data / stream).iterdir()):
            (folder / stream / file.name).write_bytes(f"{names}\n".encode() + file.read_bytes())
