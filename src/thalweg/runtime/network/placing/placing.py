"""Where a query runs as a whole: at the node that was asked, or where most of its input is.

What a query reads of other nodes travels to it, and its result to who asks. The other strategies
are planners of `placement`, which `deploying.py` asks and carries out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from thalweg.cql import Script
from thalweg.engine.site import WrongUse
from thalweg.engine.wrappers.refusals import refusal
from thalweg.plan.catalog import QueryDef
from thalweg.plan.engines import NO_ENGINE, SHARED
from thalweg.plan.shapes import shape_of
from thalweg.runtime.network.directory import FED, Defined, Directory
from thalweg.runtime.network.placing.deploying import Placement, able_node, whole_at
from thalweg.runtime.network.placing.strategies import Strategy

Place = Callable[[QueryDef], str]  # the node that runs a query


def placed_locally(me: str) -> Place:
    return lambda _: me


def placed_by_engines(
    script: Script, place: Place, directory: Directory, me: str
) -> Iterator[Placement]:
    """New queries that the engine of the node that is to run them refuses: at another one, with the
    reason. Raises WrongUse if there is none."""
    known = directory.defined()
    engines = {n.name: n.engine for n in directory.nodes()}
    for query in script.queries:
        at = place(query)
        if query.name.lower() in known or engines.get(at, SHARED) in (SHARED, NO_ENGINE):
            continue
        why = refusal(engines[at], query.plan)
        if why is None:
            continue
        up = {n: engine for n, engine in engines.items() if directory.is_up(n)}
        homes = {d.name: d.node for d in known.values() if d.kind in FED}
        to = able_node(query, up, me, homes)
        if to is None:
            raise WrongUse(f"{query.name}: {why}; and no other node is there that can")
        words = (f"{at} was asked, and has another engine: {why}", f"so it stands at {to}")
        yield whole_at(query, to, Strategy.local.value, words)


def placed_at_home(me: str, defined: Mapping[str, Defined], arrived: Mapping[str, int]) -> Place:
    """`arrived` tells of each stream, by lower-cased name, how many tuples have come so far; one
    that it does not have is at a node that does not answer."""

    def place(query: QueryDef) -> str:
        weights: dict[str, int] = {me: 0}
        for stream in shape_of(query).streams:
            entry = defined.get(stream.name.lower())
            home = me if entry is None or entry.kind not in FED else entry.node
            if entry is not None and stream.name.lower() not in arrived:
                continue
            weights[home] = weights.get(home, 0) + 1 + arrived.get(stream.name.lower(), 0)
        # Who was asked, where that makes no difference.
        return max(weights, key=lambda node: (weights[node], node == me, node))

    return place
