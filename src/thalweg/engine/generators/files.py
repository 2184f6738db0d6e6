"""Writes a generator's streams as files, for benches, demos and tests.

File names sort in order of arrival, and rows keep it within a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from thalweg.engine.generators.base import Generator
from thalweg.engine.generators.settings import GeneratorError, suggest


def write_files(
    generator: Generator,
    stream: str,
    folder: Path | str,
    rows_per_file: int,
    form: str = "parquet",
) -> list[Path]:
    """All of a limited stream, `rows_per_file` rows each; returns the files in order."""
    if generator.settings.limit is None:
        raise GeneratorError("a stream without a limit never ends: set limit to write it as files")
    write = FORMS.get(form)
    if write is None:
        raise GeneratorError(f"there is no file format {form}{suggest(form, FORMS)}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, batch in enumerate(generator.batches(stream, rows_per_file)):
        path = folder / f"{stream}-{number:06d}.{form}"
        write(batch, path)
        written.append(path)
    return written


def _write_parquet(batch: pa.RecordBatch, path: Path) -> None:
    pyarrow.parquet.write_table(pa.Table.from_batches([batch]), path)


def _write_csv(batch: pa.RecordBatch, path: Path) -> None:
    pyarrow.csv.write_csv(batch, path)


def _write_json(batch: pa.RecordBatch, path: Path) -> None:
    """One object a line; NULL is null, a TIMESTAMP is ISO text."""
    with path.open("w", encoding="utf-8") as file:
        for row in batch.to_pylist():
            file.write(json.dumps(row, default=lambda value: value.isoformat(sep=" ")) + "\n")


FORMS: Mapping[str, Callable[[pa.RecordBatch, Path], None]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "json": _write_json,
}
