"""From queries to what protocols are asked, and from what they decide to a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
from msgspec import structs

from thalweg.overlay.distribution.messages import Submit
from thalweg.overlay.protocol import Address
from thalweg.overlay.sand.query import TreeQuery, query_of
from thalweg.overlay.sand.zones import cut
from thalweg.placement.arrays import NONE, ints
from thalweg.placement.from_cql.whole import has_clock
from thalweg.placement.problem import Problem
from thalweg.placement.sand.planning import outcome_of
from thalweg.placement.sand.query_trees import Placed, query_tree, ways_of
from thalweg.placement.sand.replacing import Patience, can_stay, pays
from thalweg.placement.sand.tree import Tree
from thalweg.placement.strategy import Outcome
from thalweg.plan.catalog import QueryDef
from thalweg.plan.cutting import in_its_place, part_schema
from thalweg.plan.nodes import base_streams, resolution_us
from thalweg.plan.travelling import encode_plan
from thalweg.runtime.data.fragments import NAMED, Fragment, Input, digest, whole_reach
from thalweg.runtime.network.measuring import Decided
from thalweg.runtime.network.placing.deploying import Decide, Placement
from thalweg.runtime.network.protocols.coordinators import substream_of
from thalweg.runtime.network.protocols.stack import COSMOS

ZONE_LEVELS = 2  # of operators in a zone: fewer messages than with 1, and little is lost
BETWEEN = 8  # hosts in between that In-Network tries for each operator


@dataclass(frozen=True, slots=True)
class Decision:
    """By query: where everything of it is to be, and who has decided, for people."""

    strategy: str
    decided: Mapping[str, Decided]
    words: Mapping[str, tuple[str, ...]]

    @property
    def nodes(self) -> set[str]:
        return {name for found in self.decided.values() for name in found.at}

    def outcome(self, problem: Problem) -> Outcome:
        return decided_as(self.strategy, {q: d.at for q, d in self.decided.items()})(problem)

    def applied(self, placement: Placement) -> Placement:
        """A placement that followed it, with what has to be known of that later on."""
        found = self.decided.get(placement.query)
        if found is None or not placement.task.runs or not found.ticket:
            return placement  # it has come to stand as a whole, whatever was decided
        task = structs.replace(
            placement.task,
            decided=found,
            words=(*placement.task.words, *self.words[placement.query]),
        )
        if self.strategy == COSMOS:
            fragment = apart(Fragment(task.plan), found.at[0])
            task = structs.replace(task, fragment=fragment)
            return replace(placement, fragment=fragment, task=task)
        return replace(placement, task=task)


def decided_as(strategy: str, places: Mapping[str, Sequence[str]]) -> Decide:
    """`places` are, by query, the nodes of its tree (`query_tree`), or the one that runs it all."""

    def decide(problem: Problem) -> Outcome:
        number = {name: i for i, name in enumerate(problem.hosts.names)}
        placed = []
        for i, name in enumerate(problem.queries.names):
            away = [at for at in places[name] if at not in number]
            if away:
                raise ValueError(f"node {away[0]}, which was chosen for {name}, does not answer")
            found = query_tree(problem, i)
            hosts = [number[at] for at in places[name]]
            if strategy == COSMOS:
                hosts = _whole_at(found.tree, *hosts)
            if len(found.tree) != len(hosts):
                raise ValueError(f"{name} was decided for another tree")
            placed.append(Placed(found, ints(hosts)))
        return outcome_of(problem, placed)

    return decide


def decided_anew(was: Sequence[str], now: Sequence[str]) -> Decide:
    """Of operators that run: what zones decide now, if going there pays (SAND 2.3, 3); zones that
    are asked anew do not know where operators stand."""

    def decide(problem: Problem) -> Outcome:
        number = {name: i for i, name in enumerate(problem.hosts.names)}
        found, ways = query_tree(problem, 0), ways_of(problem.hosts)
        better = Placed(found, ints(number[at] for at in now))
        if len(was) != len(found.tree) or any(at not in number for at in was):
            return outcome_of(problem, [better])
        runs = Placed(found, ints(number[at] for at in was))
        stays = can_stay(runs, ways) and not pays(problem, runs, better, ways, Patience())
        return outcome_of(problem, [runs if stays else better])

    return decide


def _whole_at(tree: Tree, owner: int) -> list[int]:
    """With all operators at the query's owner."""
    is_free = [n != tree.root and bool(tree.inputs[n]) for n in range(len(tree))]
    return [owner if free else int(tree.pinned[n]) for n, free in enumerate(is_free)]


def apart(whole: Fragment, at: str) -> Fragment:
    """A query that reads its whole result of a node, be it the same one: so it can move."""
    name, plan = f"{NAMED}0", whole.node
    read = encode_plan(in_its_place(plan, part_schema(plan, name)))
    return Fragment(read, (Input(name, at, whole),))


# --- zones


def tree_queries(
    problem: Problem, strategy: str, addresses: Sequence[Address], tickets: Sequence[str]
) -> list[TreeQuery]:
    """What SAND is asked for all queries of a problem, over its hosts by address."""
    found = []
    for i, ticket in enumerate(tickets):
        tree = replace(query_tree(problem, i).tree, name=ticket)
        found.append(query_of(tree, addresses, strategy, ZONE_LEVELS, BETWEEN))
    return found


def has_drifted(asked: TreeQuery, now: TreeQuery, by: float) -> bool:
    """Whether some stream of a tree has another rate, by so large a share."""
    if [n.name for n in asked.nodes] != [n.name for n in now.nodes]:
        return True  # the lightest tree is another one
    pairs = zip(asked.nodes, now.nodes, strict=True)
    return any(abs(a.rate_bps - b.rate_bps) > by * a.rate_bps for a, b in pairs)


def zone_words(
    asked: TreeQuery, at: Sequence[str], coordinators: Iterable[tuple[int, str]]
) -> tuple[str, ...]:
    """For people: who decided about what."""
    by = dict(coordinators)
    found = [
        "decided by the coordinators of its zones together (SAND 4), over delays they measured"
    ]
    for zone in cut(asked):
        nodes = [o.node for o in zone.operators if o.node != asked.root]
        if nodes:
            where = ", ".join(dict.fromkeys(at[n] for n in nodes))
            title = f"zone {asked.name.partition('#')[0]}/{zone.top}"
            found.append(f"{title}, of {len(nodes)} operators, by {by[zone.top]}: at {where}")
    return tuple(found)


def encode_asked(asked: TreeQuery) -> bytes:
    return msgspec.msgpack.encode(asked)


def decode_asked(packed: bytes) -> TreeQuery:
    return msgspec.msgpack.decode(packed, type=TreeQuery)


# --- coordinators


def movable(query: QueryDef) -> bool:
    """Whether another node can compute it: what reads tables alone has no instants."""
    return has_clock(query.plan)


def submissions(
    problem: Problem, queries: Sequence[QueryDef], titles: Sequence[str]
) -> list[Submit]:
    """What COSMOS is asked: substreams, result, and load of each query, in cores and bits/s."""
    found = []
    rates = dict(zip(problem.streams.names, problem.streams.rate_bps.tolist(), strict=True))
    for i, (query, title) in enumerate(zip(queries, titles, strict=True)):
        operators = [o for o in query_tree(problem, i).operators.tolist() if o != NONE]
        whole = Fragment(encode_plan(query.plan))
        streams = sorted({s.name for s in base_streams(query.plan)})
        reach_s = (whole_reach(whole) or 0) * resolution_us(query.plan) / 1e6
        found.append(
            Submit(
                title,
                digest(whole),
                tuple(sorted({substream_of(s) for s in streams})),
                float(problem.streams.rate_bps[problem.queries.wanted[i]]),
                float(problem.operators.cpu[operators].sum()),
                sum(rates[s] for s in streams) * reach_s / 8,
            )
        )
    return found


def coordinator_words(owner: str, by: Sequence[str]) -> tuple[str, ...]:
    if not by:
        return (f"moved to {owner} by a round of the coordinators (COSMOS 3.3.7)",)
    chain = ", then ".join([f"{by[0]} (root)", *by[1:]])
    return (f"routed to {owner} by coordinators (COSMOS 3.3.6): {chain}",)
