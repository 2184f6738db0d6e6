"""Definitions that have just been made or changed at another node, and of which this one has not
heard yet: before a name is called unknown, the others are asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from thalweg.api.network.forwarding import Forwarding
from thalweg.cql import CqlError, parse_script
from thalweg.cql.bind.dependencies import names_read
from thalweg.runtime.network.node import Node

_WITHIN_S, _LOOK_EVERY_S = 5.0, 0.02
_AT_ONCE = 50  # names in one request


def names_in(text: str) -> set[str]:
    """What a text reads, changes or writes to."""
    try:
        own = {s.name.text.lower() for s in parse_script(text) if s.name is not None}
    except CqlError:
        own = set()
    return own | names_read(text)


async def hear_of(
    node: Node, forwarding: Forwarding, request: Request, names: Iterable[str]
) -> None:
    """What others have of these is known here behind it, unless that takes too long."""
    directory = node.directory
    others = [n for n in directory.nodes() if n.name != node.name and directory.is_up(n.name)]
    wanted, news = sorted(names), list[tuple[str, dict[str, Any]]]()
    for first in range(0, len(wanted) if others else 0, _AT_ONCE):
        asked = urlencode([("name", n) for n in wanted[first : first + _AT_ONCE]])
        answers = await forwarding.get_all(request, others, f"/network/defined?{asked}")
        news += [
            (o.name, d) for o, told in answers for d in told or () if _is_news(node, o.name, d)
        ]
    until = time.monotonic() + _WITHIN_S
    while any(_is_news(node, owner, entry) for owner, entry in news):
        if time.monotonic() > until:
            return
        await asyncio.sleep(_LOOK_EVERY_S)


def _is_news(node: Node, owner: str, told: dict[str, Any]) -> bool:
    known = node.find(told["name"])
    if known is None:
        return True
    return known.node == owner and (known.kind, known.text) != (told["kind"], told["text"])
