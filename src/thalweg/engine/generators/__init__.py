"""Seeded streams to try things with: auctions, stocks, packets, sensors."""

from thalweg.engine.generators.base import Generator
from thalweg.engine.generators.files import write_files
from thalweg.engine.generators.registry import (
    GENERATORS,
    GeneratedStream,
    make_generator,
    open_generator,
)
from thalweg.engine.generators.settings import GeneratorError

__all__ = [
    "GENERATORS",
    "GeneratedStream",
    "Generator",
    "GeneratorError",
    "make_generator",
    "open_generator",
    "write_files",
]
