"""A network described in a TOML file.

strategy = "sqpr"     # where operators of queries run, unless submit says otherwise

[[node]]
name = "paris"
site = "eu"
master = "local[2]"   # in-process for ticks without Spark
port = 7341           # of its service; a free one if it is not given
cpu = 2.0             # cores that placed queries may take; without, as many as they like
out_bps = 100e6       # and bits per second that may leave it, and come in
in_bps = 100e6

[[node]]
name = "lyon"
site = "eu"
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

import msgspec

from thalweg.cli.exits import BAD_INPUT, CommandFailed
from thalweg.cli.network.running import Wanted
from thalweg.runtime.network.placing import Strategy

Limit = Annotated[float, msgspec.Meta(ge=0)] | None


class _Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    site: str = "here"
    master: str = "local[1]"
    port: int = 0
    cpu: Limit = None
    out_bps: Limit = None
    in_bps: Limit = None


class _Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    node: tuple[_Node, ...]
    strategy: Strategy = Strategy.local


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
    chosen = found.strategy.value
    return [
        Wanted(n.name, n.site, n.master, n.port, chosen, n.cpu, n.out_bps, n.in_bps)
        for n in found.node
    ]
