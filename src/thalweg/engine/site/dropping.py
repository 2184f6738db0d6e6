"""What goes with a stream that is dropped: a later one of the same name starts from nothing."""

from __future__ import annotations

from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.ingest.landing import late_file, rejects_file


def purge_stream(engine: SharedEngine, name: str) -> None:
    """Delete a stream's tuples, progress and counts. No query reads it any more."""
    store = engine.store
    stems = f"stem/{name}/"
    stored = [key for key, s in engine._segments.items() if s.table.startswith(stems)]
    sources = f"source/{name}/"
    with store.transaction() as db:
        for table in ("partitions", "batches", "landed", "floors", "stems", "kept_columns"):
            db.execute(f"DELETE FROM {table} WHERE stream = ?", (name,))
        store.change_segments("segments", [], stored)
        db.execute("DELETE FROM progress WHERE substr(name, 1, ?) = ?", (len(sources), sources))
        for kind in ("late", "rejected"):
            db.execute("DELETE FROM counters WHERE name = ?", (f"{kind}/{name}",))
        for file in (late_file(name), rejects_file(name)):
            db.execute("DELETE FROM progress WHERE name = ?", (file,))
    for key in stored:
        del engine._segments[key]
    engine.streams.pop(name, None)
    engine.forget_plan()


def reread_segments(engine: SharedEngine) -> None:
    """After a change that was taken back: the segments that the book lists."""
    engine._segments = {s.key: s for s in engine.store.segments("segments")}
    engine.forget_plan()


def sweep_landed(engine: SharedEngine) -> None:
    """Remove tuples' files that the book does not list: of dropped streams, and of a crash."""
    listed = {f for (f,) in engine.store.all("SELECT file FROM landed WHERE file IS NOT NULL")}
    for path in engine.landing.folder.iterdir():
        if f"{engine.landing.folder.name}/{path.name}" not in listed:
            path.unlink(missing_ok=True)
