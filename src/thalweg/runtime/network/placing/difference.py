"""The difference between where fragments run and where a new deployment has them run.

The part of a query that its own node computes stays as it was cut. What it reads of other nodes is
compared by what it computes, over streams alone, so that it makes no difference how it was cut; and
moves to where the new deployment has that computed, in the new deployment's pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from thalweg.plan.expr import Col
from thalweg.plan.nodes import Node, Project, transform, walk
from thalweg.plan.travelling import encode_plan
from thalweg.runtime.data.fragments import Fragment, Input, digest, inlined, whole_reach


@dataclass(frozen=True, slots=True)
class Running:
    """A fragment that a query reads, as it runs."""

    stream: str  # by which its reader knows it
    at: str
    publication: str
    fragment: Fragment


class Change(msgspec.Struct, frozen=True):
    """From an instant on, which is chosen when it is carried out, a fragment runs elsewhere."""

    query: str
    stream: str
    publication: str
    was: str
    to: str
    fragment: Fragment


@dataclass(frozen=True, slots=True)
class Stays:
    """A fragment that is not moved, and why."""

    query: str
    at: str
    why: str


def difference(
    query: str, running: Iterable[Running], wanted: Fragment, me: str
) -> Iterator[Change | Stays]:
    """What has to change for a query of node `me` to run as it is wanted."""
    places = list(_places(wanted, me))
    for now in running:
        plan = plain(inlined(now.fragment))
        found = _place_of(plan, places)
        if found is None:
            yield Stays(query, now.at, "the new plan does not compute this by itself")
            continue
        to, fragment = found
        if fragment is None:
            fragment = Fragment(encode_plan(inlined(now.fragment)))
        # What is read has been known from its beginning; what goes on need not be.
        fragment = msgspec.structs.replace(fragment, from_beginning=False)
        if to == now.at and digest(fragment) == digest(_going_on(now.fragment)):
            continue
        if whole_reach(now.fragment) is None:
            yield Stays(query, now.at, "it can't be rebuilt elsewhere (lossy)")
        elif to == now.at and to == me:
            continue  # as one piece or in several, it is here
        else:
            yield Change(query, now.stream, now.publication, now.at, to, fragment)


def changed(root: Fragment, running: Iterable[Running], changes: Iterable[Change]) -> Fragment:
    """What a query is given once the changes are made."""
    new = {c.stream: (c.to, c.fragment) for c in changes}
    found = [(plain(inlined(r.fragment)), new.get(r.stream, (r.at, r.fragment))) for r in running]

    def after(given: Input) -> Input:
        plan = plain(inlined(given.fragment))
        for known, (at, fragment) in found:
            if known == plan:
                return Input(given.name, at, fragment)
        return given

    return msgspec.structs.replace(root, inputs=tuple(map(after, root.inputs)))


def _going_on(fragment: Fragment) -> Fragment:
    return msgspec.structs.replace(fragment, from_beginning=False)


def _places(fragment: Fragment, at: str) -> Iterator[tuple[Node, str, Fragment]]:
    """All parts of a deployment, outer ones first: what each computes, and where."""
    yield plain(inlined(fragment)), at, fragment
    for given in fragment.inputs:
        yield from _places(given.fragment, given.at)


def _place_of(
    plan: Node, places: list[tuple[Node, str, Fragment]]
) -> tuple[str, Fragment | None] | None:
    """Where a plan is computed: as a part of its own, or inside of the innermost that has it."""
    for whole, at, fragment in places[1:]:
        if whole == plan:
            return at, fragment
    inside = [at for whole, at, _ in places if any(node == plan for node in walk(whole))]
    return (inside[-1], None) if inside else None


def plain(plan: Node) -> Node:
    """Without projections that change nothing: they mark where a plan was cut."""

    def change(node: Node) -> Node:
        if not isinstance(node, Project):
            return node
        same = all(isinstance(c, Col) and c.index == i for i, c in enumerate(node.exprs))
        names = tuple(f.name for f in node.input.schema)
        return node.input if same and node.names == names else node

    return transform(plan, change)


def wanted_inputs(given: Fragment) -> list[dict[str, object]]:
    """What it reads of others, as `wrongly_placed` looks for it: under one of these names."""
    return [
        {"at": i.at, "names": [digest(i.fragment), digest(_going_on(i.fragment))]}
        for i in given.inputs
    ]


def wrongly_placed(tree: Mapping[str, Any]) -> Iterator[str]:
    """What runs, as nodes tell it (`api/network/placed.py`), beside what should: for each part what
    its own node was asked for, but for moves that were meant."""
    found = {
        given["fragment"]: given
        for given in tree["inputs"]
        # The old track of a move (PTLB) is the move's, and ends by itself.
        if given["fragment"] is not None and given.get("until") is None
    }
    if tree["wanted"] is None:
        return  # by a version that did not write it down
    for wanted in tree["wanted"]:
        name, at = wanted["names"][0], wanted["at"]
        known = next((found.pop(n) for n in wanted["names"] if n in found), None)
        what = f"fragment {name}, which {tree['node']} reads,"
        if known is None:
            yield f"{what} should run at {at}, and does not run"
        elif known["from"] != at:
            yield f"{what} should run at {at}, and runs at {known['from']}"
        elif known.get("part") is None:
            yield f"{what} should run at {at}, which does not answer for it"
        else:
            yield from wrongly_placed(known["part"])
    for name, known in found.items():
        yield f"fragment {name} runs at {known['from']} for {tree['node']}, and should not"
