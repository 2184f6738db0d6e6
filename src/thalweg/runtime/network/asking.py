"""What other nodes measure, asked of them directly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from thalweg.runtime.data.client import NotServed, Unreachable
from thalweg.runtime.data.messages import Measure, Measures
from thalweg.runtime.network.measuring import NodeMeasure

if TYPE_CHECKING:
    from thalweg.runtime.network.node import Node

_ANSWER_WITHIN_S = 5.0


def measured_by(node: Node, names: Iterable[str] | None = None) -> Iterator[NodeMeasure]:
    """The network, or these nodes, as it is now; who does not answer is left out, and who runs
    nothing."""
    wanted = None if names is None else set(names)
    for other in node.directory.nodes():
        if other.only_passes_on or (wanted is not None and other.name not in wanted):
            continue
        if other.name == node.name:
            yield node.planning.measured()
        elif node.directory.is_up(other.name):
            with suppress(Unreachable, NotServed):
                yield _ask(node, other.name)


def _ask(node: Node, other: str) -> NodeMeasure:
    """Raises Unreachable, NotServed."""
    client = node.mirrors.connect(other)
    try:
        answer = client.ask(Measure(node.name), _ANSWER_WITHIN_S)
    finally:
        client.close()
    assert isinstance(answer, Measures)
    return msgspec.msgpack.decode(answer.told, type=NodeMeasure)
