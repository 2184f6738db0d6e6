"""Which generators there are, and how `CREATE STREAM … FROM 'generator:name/Stream'` opens one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from thalweg.engine.generators.auctions import Auctions
from thalweg.engine.generators.base import Generator
from thalweg.engine.generators.packets import Packets
from thalweg.engine.generators.sensors import Sensors
from thalweg.engine.generators.settings import GeneratorError, parse_settings, suggest
from thalweg.engine.generators.stocks import Stocks

SCHEME = "generator:"

GENERATORS: tuple[type[Generator], ...] = (Auctions, Stocks, Packets, Sensors)

_BY_NAME = {kind.name: kind for kind in GENERATORS}


class GeneratedStream(NamedTuple):
    generator: Generator
    stream: str


def make_generator(name: str, options: Mapping[str, str] | None = None) -> Generator:
    """A generator by name, its settings given as text."""
    kind = _BY_NAME.get(name.lower())
    if kind is None:
        raise GeneratorError(f"there is no generator {name}{suggest(name, _BY_NAME)}")
    return kind(parse_settings(kind.settings_type, options or {}))


def open_generator(uri: str, options: Mapping[str, str] | None = None) -> GeneratedStream:
    """The generator and stream that a URI such as `generator:auctions/Bid` names."""
    name, slash, stream = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or not slash:
        raise GeneratorError(f"{uri!r} is not of the form {SCHEME}name/Stream")
    generator = make_generator(name, options)
    return GeneratedStream(generator, generator.stream(stream).name)
