"""Fragments: what one node computes for another, as it is told and as it is named.

A fragment is known by its plan and by what it reads of which node, never by a text. Two that are
equal give the same rows from the instant on at which both have begun and their windows are filled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import msgspec

from thalweg.engine.shared.state.names import COMPUTED
from thalweg.plan import nodes
from thalweg.plan.cutting import in_its_place, part_schema, places, reach
from thalweg.plan.nodes import Node
from thalweg.plan.travelling import decode_plan, encode_plan

NAMED = "fragment/"  # names of streams that others compute begin like this, and no user's may
VALUES = 1  # of what expressions give: nodes of different versions do not stand for each other


class Fragment(msgspec.Struct, frozen=True):
    """Operators that run at one node. The plan reads streams, and by their names the inputs that
    other nodes compute. `from_beginning`: of no use if it can't begin with its streams."""

    plan: bytes
    inputs: tuple[Input, ...] = ()
    from_beginning: bool = False

    @property
    def node(self) -> Node:
        """The plan's root."""
        return decode_plan(self.plan)


class Input(msgspec.Struct, frozen=True):
    """A fragment that another node computes."""

    name: str  # by which the plan reads it
    at: str
    fragment: Fragment


def cut_plan(plan: Node, at: Mapping[tuple[int, ...], str], here: str) -> Fragment:
    """A plan for a node, with operators, by their paths (`plan/cutting.py`), at others. What is
    below an operator runs where it does, unless something else is said of it."""
    allowed = {p.path: p.from_beginning for p in places(plan)}
    wrong = [path for path in at if path not in allowed]
    if wrong:
        raise ValueError(f"this plan can't be cut at {wrong[0]}")

    def part(node: Node, path: tuple[int, ...], own: str) -> Fragment:
        inputs: list[Input] = []

        def read(node: Node, path: tuple[int, ...]) -> Node:
            given = at.get(path, own)
            if given == own:
                below = enumerate(nodes.inputs_of(node))
                return nodes.with_inputs(node, tuple(read(n, (*path, i)) for i, n in below))
            name = f"{NAMED}{len(inputs)}"
            inputs.append(Input(name, given, part(node, path, given)))
            return in_its_place(node, part_schema(node, name))

        made = read(node, path)
        return Fragment(encode_plan(made), tuple(inputs), allowed.get(path, False))

    return part(plan, (), here)


def digest(fragment: Fragment) -> str:
    packed = msgspec.msgpack.encode((VALUES, fragment))
    return hashlib.blake2b(packed, digest_size=5).hexdigest()


def fragment_publication(fragment: Fragment, reader: str, number: int) -> str:
    return f"{COMPUTED}{digest(fragment)}>{reader}.{number}"


def is_fragment(publication: str) -> bool:
    return publication.startswith(COMPUTED)


def digest_of(publication: str) -> str | None:
    """Of the fragment that is published; None if it is none."""
    if not is_fragment(publication):
        return None
    return publication.removeprefix(COMPUTED).partition(">")[0]


def stream_name(fragment: Fragment, at: str, number: int) -> str:
    """By which its reader knows it."""
    return f"{NAMED}{digest(fragment)}@{at}.{number}"


def whole_reach(fragment: Fragment) -> int | None:
    """How long it, and all that it is made of, remembers a tuple; None: nobody can tell."""
    found = 0
    for part in every(fragment):
        own = reach(part.node)
        if own is None:
            return None
        found += own
    return found


def inlined(fragment: Fragment) -> Node:
    """Its plan over streams alone: with what others compute for it in its place."""
    inputs = {given.name: inlined(given.fragment) for given in fragment.inputs}

    def read(node: Node) -> Node:
        if isinstance(node, nodes.Scan) and node.stream.name in inputs:
            return inputs[node.stream.name]
        return node

    return nodes.transform(fragment.node, read)


def every(fragment: Fragment) -> Iterator[Fragment]:
    """It, and all fragments below."""
    yield fragment
    for given in fragment.inputs:
        yield from every(given.fragment)


def nodes_of(fragment: Fragment) -> Iterator[str]:
    """Who computes something for it."""
    for given in fragment.inputs:
        yield given.at
        yield from nodes_of(given.fragment)
