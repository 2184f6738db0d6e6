"""Late and rejected tuples, set aside as they came: a file of JSON lines for each stream and kind.

The book knows how long a file is; what a crash left behind that is cut off before the next line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from thalweg.engine.shared.ingest.normalise import RAW, REFUSED
from thalweg.engine.shared.ingest.values import python_value
from thalweg.engine.shared.state.names import side_file
from thalweg.engine.shared.state.store import Store


def set_aside(store: Store, stream: str, kind: str, lines: Sequence[str]) -> None:
    """Append lines; inside the transaction that makes it a fact, since it takes the next place."""
    if not lines:
        return
    length = store.inputs.set_aside(stream, kind)[1]
    file = side_file(stream, kind)
    path = store.folder / file
    path.parent.mkdir(exist_ok=True)
    content = "".join(line + "\n" for line in lines).encode()
    with path.open("ab") as out:
        out.truncate(length)
        out.seek(length)
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    store.appended(file, length, content)
    store.inputs.write_set_aside(stream, kind, len(lines), length + len(content))


def lines_of(batch: pl.DataFrame, rows: Sequence[int], reasons: Mapping[int, str]) -> list[str]:
    """Tuples of a batch as they came, with the reason where there is one."""
    return [_line(batch, row, reasons.get(row)) for row in rows]


def _line(batch: pl.DataFrame, row: int, reason: str | None) -> str:
    one = batch.slice(row, 1)
    raw = one[RAW][0] if RAW in batch.columns else None
    values = {c: python_value(one[c]) for c in batch.columns if c not in (REFUSED, RAW)}
    entry: dict[str, Any] = {"row": values if raw is None else raw}
    if reason is not None:
        entry["reason"] = reason
    return json.dumps(entry, default=str)
