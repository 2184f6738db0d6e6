"""Segments: immutable, sorted pieces of SteMs and operator state, many to a file.

A task writes one *bundle* per tick: Arrow IPC streams one after the other, uncompressed, so that a
reader maps the bundle and a segment costs nothing to open. A segment is sorted by one column: a
SteM by the hash of its key (a bucket is a range of hashes, so a slice of every segment), pending
ends by their instant. A `Segment` says where it is and what it spans; the manifest is a list of
them, and a segment that nobody lists does not exist.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa

from thalweg.engine.shared.frames import H
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.hashing import HASHING
from thalweg.engine.shared.state.names import Table

ALIGNMENT = 64
SCHEMA_VERSION = "1"  # of what is in a segment, here or on its way to another node
_METADATA = {"thalweg.schema": SCHEMA_VERSION, "thalweg.hashing": HASHING}


class Section(NamedTuple):
    """A frame in a file of many."""

    file: str
    offset: int
    size: int


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """One piece of a table. `low` and `high` bound its instants, `first` and `last` its hashes."""

    table: Table
    bundle: str
    offset: int
    size: int
    rows: int
    low: int
    high: int
    first: int
    last: int
    hashing: str = HASHING

    @property
    def key(self) -> tuple[str, int]:
        return self.bundle, self.offset


_BESIDE = "+"


def beside(file: str) -> str:
    """As the bundle of results: they are in a file of state."""
    return _BESIDE + file


def is_beside(bundle: str) -> bool:
    return bundle.startswith(_BESIDE)


def file_of(bundle: str) -> str:
    return bundle.removeprefix(_BESIDE)


def tick_of(file: str) -> int:
    """The tick whose tasks have written a file."""
    return int(file.split("-", 1)[0])


class SegmentError(RuntimeError):
    """A segment that this version can't read."""


_VIEWS = (pa.string_view(), pa.binary_view())
_LITTLE, _WASTE = 4096, 1.25  # bytes of texts; how much more is not worth a copy


class BundleWriter:
    """Writes frames into one new file; nothing counts before `close` has made it durable. With
    `few`, so many bytes can be taken over by another file (`take_over`), and then have none."""

    def __init__(self, folder: Folder, name: str, *, few: int = 0) -> None:
        self.name = name
        self.segments: list[Segment] = []
        self._folder, self._few = folder, few
        self._file: pa.OSFile | None = None
        self._memory: pa.BufferOutputStream | None = None

    def write(self, frame: pl.DataFrame) -> Section:
        sink = self._sink
        offset = sink.tell()
        _write(frame, sink)
        size = sink.tell() - offset
        sink.write(b"\0" * (-sink.tell() % ALIGNMENT))
        if self._memory is not None and self.size > self._few:
            self._to_file()
        return Section(self.name, offset, size)

    @property
    def _sink(self) -> Any:
        if self._file is None and self._memory is None:
            if self._few:
                self._memory = pa.BufferOutputStream()
            else:
                self._file = pa.OSFile(str(self._folder.new(self.name)), "wb")
        return self._memory if self._file is None else self._file

    @property
    def size(self) -> int:
        """Bytes so far."""
        sink = self._memory if self._file is None else self._file
        return 0 if sink is None else sink.tell()

    @property
    def is_few(self) -> bool:
        return self._file is None

    def take_over(self, other: BundleWriter) -> None:
        """What another has written stands in this file, too."""
        assert other.is_few, "it has a file"
        if other._memory is None:
            return
        sink = self._sink
        start, place = sink.tell(), beside(self.name)
        sink.write(other._memory.getvalue())
        other._memory = None
        structs = msgspec.structs
        other.segments[:] = [
            structs.replace(s, bundle=place, offset=start + s.offset) for s in other.segments
        ]

    def _to_file(self) -> None:
        if self._memory is not None:
            self._file = pa.OSFile(str(self._folder.new(self.name)), "wb")
            self._file.write(self._memory.getvalue())
            self._memory = None

    def add(self, table: Table, frame: pl.DataFrame, low: int, high: int) -> Segment:
        """Append a frame that is already sorted."""
        section = self.write(frame)
        hashes = frame[H] if H in frame.columns else None
        first: Any = 0 if hashes is None else hashes.min()
        last: Any = 0 if hashes is None else hashes.max()
        segment = Segment(table, *section, frame.height, low, high, first, last)
        self.segments.append(segment)
        return segment

    def close(self) -> list[Segment]:
        self._to_file()
        if self._file is not None:
            self._file.close()
            self._folder.keep(self.name)
        return self.segments


def packed(frame: pl.DataFrame) -> bytes:
    """A frame as the bytes of a section, for a place that is no file."""
    sink = pa.BufferOutputStream()
    _write(frame, sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpacked(content: bytes) -> pl.DataFrame:
    return _frame(pa.py_buffer(content), 0, len(content))


def _write(frame: pl.DataFrame, sink: Any) -> None:
    columns = frame.to_arrow(compat_level=pl.CompatLevel.newest()).combine_chunks()
    columns = _compact(frame, columns).replace_schema_metadata(_METADATA)
    with pa.ipc.new_stream(sink, columns.schema) as writer:
        writer.write_table(columns)


def _compact(frame: pl.DataFrame, columns: pa.Table) -> pa.Table:
    """Texts are views into buffers, which a frame of few rows shares with all that it was taken
    from, and which would be written whole: they are copied where most is of no use."""
    for place, name in enumerate(frame.columns):
        column = columns.column(place)
        if column.type not in _VIEWS or column.num_chunks != 1:
            continue
        held = sum(b.size for b in column.chunk(0).buffers()[2:] if b is not None)
        texts = frame[name]
        sizes = texts.str.len_bytes() if texts.dtype == pl.String else texts.bin.size()
        if held > _LITTLE and held > int(sizes.sum() or 0) * _WASTE:
            plain = texts.to_arrow(compat_level=pl.CompatLevel.oldest())
            columns = columns.set_column(place, name, plain.cast(column.type))
    return columns


def read_section(folder: Folder, section: Section) -> pl.DataFrame:
    """One frame, mapped."""
    with pa.memory_map(str(folder.get(section.file))) as mapped:
        return _frame(mapped.read_buffer(), section.offset, section.size)


def _frame(buffer: pa.Buffer, offset: int, size: int) -> pl.DataFrame:
    part = buffer.slice(offset, size)
    with pa.ipc.open_stream(pa.BufferReader(part)) as reader:
        version = (reader.schema.metadata or {}).get(b"thalweg.schema", b"none").decode()
        if version != SCHEMA_VERSION:
            raise SegmentError(f"a segment has schema {version}, this version {SCHEMA_VERSION}")
        frame = pl.from_arrow(reader.read_all())
    assert isinstance(frame, pl.DataFrame)
    return frame


class Mapped:
    """A segment in memory: its frame, and columns of it as arrays to search and compute in."""

    __slots__ = ("_arrays", "frame", "segment")

    def __init__(self, frame: pl.DataFrame, segment: Segment | None = None) -> None:
        self.frame = frame
        self.segment = segment
        self._arrays: dict[str, np.ndarray] = {}

    @property
    def hashes(self) -> np.ndarray:
        return self.array(H)

    def array(self, column: str) -> np.ndarray:
        """A column without NULLs as an array, without copying it."""
        found = self._arrays.get(column)
        if found is None:
            found = self._arrays[column] = self.frame[column].to_numpy()
        return found


class SegmentReader:
    """Maps segments and keeps them mapped; one per worker process, across ticks. Engines of one
    process share it, each on a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buffers: dict[tuple[str, str], pa.Buffer] = {}
        self._mapped: dict[tuple[str, str, int], Mapped] = {}

    def read(self, folder: Folder, segment: Segment) -> Mapped:
        key = (folder.path, segment.bundle, segment.offset)
        found = self._mapped.get(key)
        if found is None:
            found = Mapped(self._frame(folder, segment), segment)
            with self._lock:
                self._mapped[key] = found
        return found

    def _frame(self, folder: Folder, segment: Segment) -> pl.DataFrame:
        key = (folder.path, segment.bundle)
        buffer = self._buffers.get(key)
        if buffer is None:
            with pa.memory_map(str(folder.get(segment.bundle))) as mapped:
                buffer = mapped.read_buffer()
            with self._lock:
                self._buffers[key] = buffer
        return _frame(buffer, segment.offset, segment.size)

    def mapped(self, folder: Folder) -> set[str]:
        """The files that are mapped."""
        with self._lock:
            return {name for path, name in self._buffers if path == folder.path}

    def keep_only(self, folder: Folder, bundles: set[str]) -> None:
        """Forget what the manifest no longer names, so that its files can go."""
        here = folder.path
        with self._lock:
            for key in [k for k in self._mapped if k[0] == here and k[1] not in bundles]:
                del self._mapped[key]
            for path in [k for k in self._buffers if k[0] == here and k[1] not in bundles]:
                del self._buffers[path]
