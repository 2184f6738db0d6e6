"""Parquet for all queries at once: one file per tick and kind of row, exactly once.

Queries whose results have the same columns are one table, a folder of its own; `_query` says whose
a row is. So a tick of ten thousand queries of a few shapes is a few files, and every folder can be
read as a whole.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from thalweg.engine.durable import sync
from thalweg.engine.shared.frames import MEMBER, OP, TS, names
from thalweg.engine.shared.results.emission import Emission, FamilyEmission, TickOutput
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.flat import flat_names

QUERY = "_query"
PARTIAL = ".partial-"  # Spark and others pass over names that start with a dot
_FILE = re.compile(r"tick-(\d{12})\.parquet")


@dataclass
class _Table:
    """What goes into one file: rows with the places of their queries among `queries`."""

    columns: tuple[str, ...]
    queries: list[str] = field(default_factory=list)
    places: list[np.ndarray] = field(default_factory=list)
    rows: list[pl.DataFrame] = field(default_factory=list)

    def add(self, queries: Sequence[str], places: np.ndarray, rows: pl.DataFrame) -> None:
        self.places.append(places.astype(np.int64) + len(self.queries))
        self.queries.extend(queries)
        self.rows.append(rows)

    def to_arrow(self) -> pa.Table:
        rows = pl.concat(self.rows)
        places = np.concatenate(self.places)
        speaking = np.bincount(places, minlength=len(self.queries)) > 0  # only they are listed
        place = (np.cumsum(speaking) - 1).astype(np.int32)[places]
        said = pa.array([q for q, speaks in zip(self.queries, speaking, strict=True) if speaks])
        signs = pa.array((rows[OP].to_numpy() < 0).astype(np.int8))
        values = rows.select(TS, *names(len(self.columns))).to_arrow(
            compat_level=pl.CompatLevel.oldest()  # other readers do not know views of texts
        )
        own = [
            pa.DictionaryArray.from_arrays(pa.array(place), said),
            values.column(0),
            pa.DictionaryArray.from_arrays(signs, pa.array(["+", "-"])),
        ]
        titles = flat_names(self.columns, (QUERY, TS, OP))
        return pa.table([*own, *values.columns[1:]], names=titles)


class ParquetTablesSink:
    """A folder with a folder for each set of columns, in it a file for each tick with such rows."""

    def __init__(self, folder: Path | str, *, durable: bool = True) -> None:
        self.folder = Path(folder)
        self._durable = durable
        self._tick = 0
        self._touched: set[Path] = set()  # folders in which names are not durable yet

    def open(self, committed: bytes | None) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._tick = 0 if committed is None else int(committed)
        for path in sorted(self.folder.glob("*/*")):
            found = _FILE.fullmatch(path.name)
            if found and committed is None:
                name = path.relative_to(self.folder)
                raise SinkError(
                    f"{self.folder} has results that this sink did not write ({name}): "
                    "choose an empty folder, or remove them"
                )
            if path.name.startswith(PARTIAL) or (found and int(found[1]) > self._tick):
                path.unlink()

    def write_all(self, output: TickOutput) -> None:
        tables: dict[str, _Table] = {}
        for columns, queries, places, rows in (p for e in output.emissions for p in _parts(e)):
            table = tables.setdefault(_folder_name(columns, rows), _Table(columns))
            table.add(queries, places, rows)
        for name, table in tables.items():
            self._write(self.folder / name, output.tick, table.to_arrow())
        if tables:
            self._tick = output.tick

    def _write(self, folder: Path, tick: int, table: pa.Table) -> None:
        if not folder.exists():
            folder.mkdir()
            self._touched.add(self.folder)
        name = f"tick-{tick:012d}.parquet"
        partial = folder / f"{PARTIAL}{name}"
        with partial.open("wb") as file:
            # A dictionary of values that hardly repeat would cost more than it saves.
            pq.write_table(
                table, file, compression="lz4", use_dictionary=[QUERY, OP], write_statistics=[TS]
            )
            file.flush()
            if self._durable:
                os.fsync(file.fileno())
        partial.rename(folder / name)
        self._touched.add(folder)

    def progress(self) -> bytes:
        if self._durable:
            for folder in sorted(self._touched):
                sync(folder)
        self._touched.clear()
        return str(self._tick).encode()

    def close(self) -> None:
        pass


Part = tuple[tuple[str, ...], Sequence[str], np.ndarray, pl.DataFrame]


def _parts(emission: Emission | FamilyEmission) -> Iterator[Part]:
    """(columns, queries, each row's place among them, rows), apart where columns are."""
    if isinstance(emission, Emission):
        places = np.zeros(emission.rows.height, np.int64)
        yield emission.columns, (emission.query,), places, emission.rows
        return
    places = emission.rows[MEMBER].to_numpy()
    rows = emission.rows.drop(MEMBER)
    kinds = list(dict.fromkeys(emission.columns))
    if len(kinds) == 1:
        yield kinds[0], emission.members, places, rows
        return
    number = {columns: i for i, columns in enumerate(kinds)}
    kind_of = np.array([number[c] for c in emission.columns])[places]
    for columns, i in number.items():
        mine = kind_of == i
        if mine.any():
            yield columns, emission.members, places[mine], rows.filter(pl.Series(mine))


def _folder_name(columns: tuple[str, ...], rows: pl.DataFrame) -> str:
    """Readable, and different wherever names or types are."""
    types = [str(rows.schema[c]) for c in names(len(columns))]
    digest = hashlib.blake2b(repr((columns, types)).encode(), digest_size=4).hexdigest()
    plain = (re.sub(r"\W+", "_", c, flags=re.ASCII) for c in columns)
    return "-".join(plain)[:60] + f"-{digest}"
