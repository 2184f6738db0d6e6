"""One file that grows, as `tail -F` reads it: each line counts once it has its line end."""

from __future__ import annotations

from pathlib import Path

import msgspec

from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.feed import Feed
from thalweg.engine.sources.files.lines import Block, LineFormat

_LOOK_S = 0.25
_LARGEST_READ = 8 << 20


class Followed(msgspec.Struct, frozen=True):
    """What has landed: so many bytes of the file, which are so many lines."""

    offset: int = 0
    lines: int = 0


class FollowedFile:
    """Takes each line once, also across restarts. Never ends. The file may only grow."""

    def __init__(self, path: str, lines: LineFormat) -> None:
        self._path, self._lines = Path(path), lines

    def run(self, feed: Feed) -> None:
        point = feed.resume_point()
        at = Followed() if point is None else msgspec.json.decode(point, type=Followed)
        if at.lines:
            self._lines.begin(Block(str(self._path), 0, self._head()))
        while not feed.stopped:
            block = self._next(at)
            if block is None:
                feed.wait(_LOOK_S)
                continue
            at = Followed(at.offset + len(block.text), at.lines + block.count)
            rows = self._lines.frame(self._lines.begin(block) if block.first == 0 else block)
            if rows.height:
                feed.push(rows, resume=msgspec.json.encode(at))

    def _next(self, at: Followed) -> Block | None:
        """Whole lines behind what has landed; None if there are none yet."""
        try:
            with self._path.open("rb") as file:
                there = file.seek(0, 2)
                if there < at.offset:
                    raise SourceError(
                        f"{self._path} has {there} bytes, but {at.offset} were read from it: a "
                        "file that is watched may only grow. Put it back, or watch a folder."
                    )
                file.seek(at.offset)
                text = file.read(_LARGEST_READ)
        except FileNotFoundError:
            raise SourceError(
                f"{self._path} is gone: a file that is watched may only grow. Put it back."
            ) from None
        end = text.rfind(b"\n") + 1
        if not end and len(text) == _LARGEST_READ:
            raise SourceError(
                f"{self._path}: a line has more than {_LARGEST_READ >> 20} MiB: break it up"
            )
        return Block(str(self._path), at.lines, text[:end]) if end else None

    def _head(self) -> bytes:
        with self._path.open("rb") as file:
            return file.readline()
