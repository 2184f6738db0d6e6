"""A folder or a pattern whose files become more; the book knows which of them have been taken."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import msgspec

from thalweg.engine.shared.state.watched import Batch
from thalweg.engine.sources.feed import Feed
from thalweg.engine.sources.files.locate import File, Place, natural_key
from thalweg.engine.sources.files.progress import FileProgress
from thalweg.engine.sources.files.source import FileSource
from thalweg.engine.sources.files.spark_checkpoint import read_checkpoint

_LOOK_S = 0.25
_LOOKING_SHARE = 5  # a large folder takes long to list: at most a fifth of the time goes there


class WatchedFiles:
    """Takes each file once, also across restarts and machines. Never ends.

    Files must appear whole: written elsewhere, or under a hidden name, and renamed.
    """

    def __init__(self, source: FileSource, place: Place) -> None:
        self._source, self._place = source, place
        self._taken: dict[str, int] = {}  # how large files were when they were read

    def run(self, feed: Feed) -> None:
        name = feed.stream.name
        _adopt_checkpoint(feed)
        known = feed.watched.paths(name)
        batch = feed.watched.begun(name)
        looking_s = 0.0
        while not feed.stopped:
            if batch is None:
                began = time.monotonic()
                found = self._place.files(known)
                looking_s = time.monotonic() - began
                if found:
                    batch = feed.watched.begin(name, [(f.path, f.size) for f in found])
            if batch is not None:
                self._take(feed, batch)
                if feed.stopped:
                    return  # perhaps in the middle of it
                feed.watched.end(name, batch.number)
                known |= {path for path, _ in batch.files}
                batch = None
            self._tell_growth(feed)
            feed.wait(max(_LOOK_S, looking_s * _LOOKING_SHARE))

    def _take(self, feed: Feed, batch: Batch) -> None:
        files = [File(path, size or _size(path)) for path, size in batch.files]
        for file in files:
            self._place.check(file.path)
        point = feed.resume_point()
        last = None if point is None else msgspec.json.decode(point, type=FileProgress)
        done = last if last is not None and last.batch == batch.number else None
        self._taken |= {file.path: file.size for file in files}
        ordered = sorted(files, key=lambda file: natural_key(file.path))
        self._source.read(feed, ordered, done, batch=batch.number)

    def _tell_growth(self, feed: Feed) -> None:
        """A file is read once: what is appended to it later is lost, and nobody should wonder."""
        for path, size in list(self._taken.items()):
            try:
                now = Path(path).stat().st_size
            except OSError:
                continue  # what is gone was read
            if now > size:
                self._taken[path] = now
                feed.warn(
                    f"{path} has grown by {now - size} bytes after it was read, and they do not "
                    "count: each file of a watched folder is read once. Write new files, or read "
                    "this one alone with OPTIONS (watch 'true')"
                )


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0  # whoever reads it says so


def _adopt_checkpoint(feed: Feed) -> None:
    """Structured Streaming watched folders in earlier versions: go on where it was."""
    checkpoint = feed.folder / "checkpoint"
    if checkpoint.exists():
        if not feed.watched.paths(feed.stream.name):
            files, upto = read_checkpoint(checkpoint)
            feed.watched.adopt(feed.stream.name, files, upto)
        shutil.rmtree(checkpoint)
