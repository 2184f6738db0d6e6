"""What SQLite has written to its write-ahead log, transaction by transaction.

The log is a header and frames: a page each, with the size of the database in the last frame of a
transaction, and a checksum over everything before it. So bytes up to the end of a transaction are
a log themselves, and pieces that were read one after the other can be put together again.
(https://www.sqlite.org/fileformat2.html#walformat)
"""

from __future__ import annotations

import struct
from pathlib import Path

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")


def committed_since(path: Path, offset: int) -> bytes:
    """From `offset`, the end of a transaction or 0, to the end of the last transaction.

    Frames behind that may be left of one that was rolled back; they bear no commit. Frames of an
    earlier round through the file have other salts.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return b""
            _, _, page_size, _, *salts, _, _ = _HEADER.unpack(header)
            file.seek(offset)
            found = file.read()
    except FileNotFoundError:
        return b""
    at = 0 if offset else _HEADER.size
    end = 0
    size = _FRAME.size + page_size
    while at + size <= len(found):
        _, pages, *frame_salts, _, _ = _FRAME.unpack_from(found, at)
        if frame_salts != salts:
            break
        at += size
        if pages:
            end = at
    return found[:end]
