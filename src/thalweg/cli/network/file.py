"""A network described in a TOML file.

[[node]]
name = "paris"
site = "eu"
master = "local[2]"   # in-process for ticks without Spark
port = 7341           # of its service; a free one if it is not given

[[node]]
name = "lyon"
site = "eu"
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from thalweg.cli.exits import BAD_INPUT, CommandFailed
from thalweg.cli.network.running import Wanted


class _Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    site: str = "here"
    master: str = "local[1]"
    port: int = 0


class _Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    node: tuple[_Node, ...]


def nodes_of(path: Path) -> list[Wanted]:
    """The nodes that a file wants. Raises CommandFailed, which says what is wrong with it."""
    try:
        found = msgspec.convert(tomllib.loads(path.read_text()), _Network)
    except OSError as error:
        raise CommandFailed(f"can't read {path}: {error.strerror}", BAD_INPUT) from None
    except (ValueError, msgspec.ValidationError) as error:
        raise CommandFailed(f"{path}: {error}", BAD_INPUT) from None
    names = [n.name for n in found.node]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice or not names:
        what = f"two nodes are named {twice[0]}" if twice else "there is no [[node]]"
        raise CommandFailed(f"{path}: {what}", BAD_INPUT)
    return [Wanted(n.name, n.site, n.master, n.port) for n in found.node]
