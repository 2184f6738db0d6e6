"""thalweg network coordinators: who decides where queries run, and what each has decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.exits import reporting
from thalweg.cli.network.drawing import tree_lines
from thalweg.cli.output import emit, emit_json


def coordinators(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show who decides where queries run, with --planning protocol: the tree of COSMOS's
    coordinators, the queries that nodes were given, and SAND's zones."""
    with reporting(), Service(url) as service:
        found = service.get("/network/coordinators")
        if as_json:
            emit_json(found)
        elif not found:
            emit("every node plans by itself (--planning node)")
        else:
            known = [node["name"] for node in service.get("/network/nodes")]
            emit("\n".join(told_lines(found, known)))


def told_lines(found: list[dict[str, Any]], known: Iterable[str]) -> Iterator[str]:
    """Of those who answer, and the names of all nodes."""
    told = {row["node"]: _load_text(row) for row in found}
    parents = {row["node"]: row["parent"] for row in found if row["parent"] is not None}
    roots = sorted(told.keys() - parents.keys())
    lost = sorted(set(parents.values()) - told.keys())
    yield from _who_decides(roots, lost)
    for head in [*roots, *lost]:
        first, *rest = tree_lines(head, parents, told)
        yield first + (f"{told[head]}, root" if head in told else ", not heard of")
        yield from (line for line in rest if not line.startswith("?"))
    yield from (f"{node} is not heard of" for node in sorted({*known} - told.keys() - {*lost}))
    for row in found:
        for query in row["queries"]:
            yield f"query {query} is run by {row['node']}"
    yield from _zones(found)


def _who_decides(roots: list[str], lost: list[str]) -> Iterator[str]:
    """Where that is not plain from the tree."""
    if not roots:
        yield (
            f"nobody decides now: {', '.join(lost)} is not heard of; who is below chooses another "
            "root within seconds"
        )
    elif len(roots) > 1:
        yield (
            f"{' and '.join(roots)} each decide for those below them: they have not heard of each "
            "other yet"
        )
    elif lost:
        yield f"{roots[0]} decides now; who is below {', '.join(lost)} is about to go elsewhere"


def _zones(found: list[dict[str, Any]]) -> Iterator[str]:
    """One that has got another coordinator is told by both for a while."""
    by: dict[tuple[str, int], list[str]] = {}
    at: dict[tuple[str, int], set[str]] = {}
    for row in found:
        for zone in row["zones"]:
            key = zone["query"], zone["zone"]
            by.setdefault(key, []).append(row["node"])
            at.setdefault(key, set()).update(zone["at"])
    for key, nodes in by.items():
        where = f"at {', '.join(sorted(at[key]))}" if at[key] else "not placed yet"
        more = " (until one of them gives it up)" if len(nodes) > 1 else ""
        yield f"zone {key[0]}/{key[1]} is placed by {' and '.join(nodes)}{more}: {where}"


def _load_text(row: dict[str, Any]) -> str:
    load = f"{row['load']:.3f}".rstrip("0").rstrip(".")
    return f", load {load} of {row['capability']:g} cores"
