"""CSV: exactly once, by cutting the file back to what was committed."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.shared.results.large import LargeEmission
from thalweg.engine.sinks.append import AppendedFile
from thalweg.engine.sinks.flat import flat, flat_names

_DATETIME = "%Y-%m-%dT%H:%M:%S%.f"


class CsvSink:
    """Columns `_ts`, `_op` and the query's own; NULL is empty, an empty text is `""`.

    A new file starts with the columns' names; one that was there before is only continued. Behind
    the last row of a version of the query stands one whose `_op` is `end`, without values.
    """

    has_fixed_columns = True  # its first line names them

    def __init__(self, path: Path | str, *, durable: bool = True) -> None:
        self._file = AppendedFile(Path(path), durable=durable)

    def open(self, committed: bytes | None) -> None:
        self._file.open(None if committed is None else int(committed))

    def write(self, emission: Emission) -> None:
        if emission.height and self._file.length == 0:
            names = pl.DataFrame(schema=flat_names(emission.columns))
            self._file.append(names.write_csv().encode())
        if isinstance(emission, LargeEmission):
            for _, path in emission.encoded(write_rows):
                self._file.append_file(path)
        elif emission.rows.height:
            self._file.append(_text(emission))
        if emission.mark is not None:
            mark = f"{emission.mark.instant},end" + "," * len(emission.columns)
            self._file.append(f"{mark}\n".encode())

    def progress(self) -> bytes:
        return str(self._file.sync()).encode()

    def close(self) -> None:
        self._file.close()


def write_rows(emission: Emission, path: Path) -> None:
    """In a task: a part of what is much."""
    path.write_bytes(_text(emission))


def _text(emission: Emission) -> bytes:
    rows = flat(emission)
    return rows.write_csv(include_header=False, datetime_format=_DATETIME).encode()
