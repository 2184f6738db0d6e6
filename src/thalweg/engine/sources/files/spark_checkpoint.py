"""Which files Structured Streaming had taken of a folder, from its checkpoint.

The source's log (`sources/0`) lists files, each with the number of the entry that it came in; every
tenth entry repeats all before it (`9.compact`). Entry by entry, offsets (`offsets`) say up to which
entry a batch of the query reaches, and commits (`commits`) which batches have ended. Files of
entries beyond the last offset were seen, and never read.
"""

from __future__ import annotations

import json
from pathlib import Path

from thalweg.engine.sources.files.locate import plain_path


def read_checkpoint(folder: Path) -> tuple[list[tuple[str, int]], int]:
    """Files with the batches that read them, and the last batch that has ended (-1: none)."""
    upto = {n: _offset(folder / "offsets" / str(n)) for n in _numbers(folder / "offsets")}
    ended = max(_numbers(folder / "commits"), default=-1)
    entry_of: dict[str, int] = {}
    for path in (folder / "sources" / "0").glob("*"):
        if path.name.removesuffix(".compact").isdigit():
            for line in path.read_text().splitlines()[1:]:
                entry = json.loads(line)
                entry_of[plain_path(entry["path"])] = int(entry["batchId"])
    files = []
    for file, entry in entry_of.items():
        batches = [n for n, last in upto.items() if entry <= last]
        if batches:
            # Offsets of old batches are removed: what came before them has been read.
            files.append((file, min(batches)))
    return files, ended


def _numbers(folder: Path) -> list[int]:
    return [int(p.name) for p in folder.glob("*") if p.name.isdigit()]


def _offset(path: Path) -> int:
    """The first line is the version, the second the query's settings; then a line a source."""
    return int(json.loads(path.read_text().splitlines()[2])["logOffset"])
