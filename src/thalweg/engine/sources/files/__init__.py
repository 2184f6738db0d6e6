"""Files as a source: CSV, JSON lines, Parquet; one, several, or a folder that grows."""

from thalweg.engine.sources.files.opening import open_files, open_remote_files

__all__ = ["open_files", "open_remote_files"]
