"""JSON lines: exactly once, by cutting the file back to what was committed."""

from __future__ import annotations

from pathlib import Path

from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.shared.results.large import LargeEmission
from thalweg.engine.sinks.append import AppendedFile
from thalweg.engine.sinks.encode import json_lines, mark_line, text_bytes


class JsonLinesSink:
    """`{"query":…,"ts":…,"op":…,"row":{…}}`, a line for each change, and one whose `op` is `end`
    behind each version of the query."""

    def __init__(self, path: Path | str, *, durable: bool = True) -> None:
        self._file = AppendedFile(Path(path), durable=durable)

    def open(self, committed: bytes | None) -> None:
        self._file.open(None if committed is None else int(committed))

    def write(self, emission: Emission) -> None:
        if isinstance(emission, LargeEmission):
            for _, path in emission.encoded(write_lines):
                self._file.append_file(path)
        elif emission.rows.height:
            self._file.append(text_bytes(json_lines(emission)))
        if emission.mark is not None:
            self._file.append(mark_line(emission).encode())

    def progress(self) -> bytes:
        return str(self._file.sync()).encode()

    def close(self) -> None:
        self._file.close()


def write_lines(emission: Emission, path: Path) -> None:
    """In a task: a part of what is much."""
    path.write_bytes(text_bytes(json_lines(emission)))
