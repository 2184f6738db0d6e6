"""Where tuples come from: files, Kafka, pushes, Python iterables, generators."""

from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.feed import Feed, Source, Stopped
from thalweg.engine.sources.registry import open_source

__all__ = ["Feed", "Source", "SourceError", "Stopped", "open_source"]
