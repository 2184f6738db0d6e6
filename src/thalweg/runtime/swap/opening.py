"""A query of users as a join across nodes: what is refused, where it is joined, how it begins."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from thalweg.adapt.swap.policies.named import BOTH, FIXED, policy_named
from thalweg.adapt.swap.query import SwapQuery
from thalweg.cql import compile_script
from thalweg.engine.shared.registering import Past
from thalweg.engine.site import Site, SiteError, WrongUse
from thalweg.placement.swap.assigning import assigned
from thalweg.placement.swap.from_plan import INSTEAD, Leg, SwapJoin, Where, swap_join
from thalweg.placement.swap.join_graph import AnnotatedJoinGraph, JoinGraphError
from thalweg.placement.swap.links import SwapPlan, set_up
from thalweg.placement.swap.text import as_text
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.cutting import part_schema
from thalweg.plan.expr import Expr
from thalweg.plan.travelling import encode_plan
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.fragments import Fragment
from thalweg.runtime.data.messages import Opened
from thalweg.runtime.data.profiles import Profile, profile_of, where_of
from thalweg.runtime.network.directory import Directory, node_of
from thalweg.runtime.network.fragments.fragments import Assembled
from thalweg.runtime.network.measuring import NodeMeasure, Task
from thalweg.runtime.network.mirrors.mirrored import Wanted
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.placing.deploying import Placement
from thalweg.runtime.swap.definitions import JOINED, SWAP, is_joined, join_text, new_id, query_of

_OPENING = "swap/opening"  # a note of publications that nothing reads yet


def join_of(query: QueryDef) -> SwapJoin:
    """Raises WrongUse with the reason if nodes can't join it."""
    if query.from_now:
        raise WrongUse(
            f"{query.name} can't be joined across nodes: FROM NOW is an instant of one node"
            + INSTEAD
        )
    try:
        return swap_join(query.plan, _told, lambda s: profile_of(query.plan, s).columns)
    except JoinGraphError as error:
        raise WrongUse(f"{query.name} can't be joined across nodes: {error}") from None


def _told(stream: StreamDef, condition: Expr) -> Where:
    return where_of(stream, frozenset({condition}))


def placed_by_swap(
    query: QueryDef,
    me: str,
    directory: Directory,
    homes: Mapping[str, str],
    measured: Sequence[NodeMeasure],
    routing: str = BOTH,
) -> Placement:
    """`routing` is a policy, or `fixed:n3,n1`: which node rows visit first. Raises WrongUse,
    SiteError."""
    join = join_of(query)
    at = [homes[leg.stream.name] for leg in join.legs]
    _check(query.name, join, at, directory)
    known = {n.name: n for n in measured}
    away = sorted({node for node in at if node not in known})
    if away:
        raise SiteError(f"node {away[0]} does not answer, and has streams that are needed")
    rates = {}
    for number, (leg, node) in enumerate(zip(join.legs, at, strict=True)):
        told = known[node].streams.get(leg.stream.name)
        rates[number] = 0.0 if told is None else told.rows_per_s
    sites = assigned(join.graph, at, rates)
    placed = AnnotatedJoinGraph(join.graph, _each(at), _each(sites))
    try:
        plan = set_up(placed)
    except JoinGraphError as error:
        raise WrongUse(f"{query.name} can't be joined across nodes: {error}{INSTEAD}") from None
    columns = [leg.column_names for leg in join.legs]
    _check_routing(routing, [*at, *sites])
    words = (f"rows choose their way by: {routing}", *as_text(plan, columns).splitlines())
    fragment = Fragment(encode_plan(query.plan))
    task = Task(
        query.name,
        fragment.plan,
        SWAP,
        False,
        (),
        (),
        words,
        fragment,
        joined_at=tuple(sites),
        routing=routing,
    )
    return Placement(query.name, me, fragment, task)


def _check_routing(asked: str, nodes: Sequence[str]) -> None:
    """Raises WrongUse."""
    name, _, order = asked.partition(":")
    if name == FIXED:
        if not order or any(node not in nodes for node in order.split(",")):
            known = ", ".join(dict.fromkeys(nodes))
            raise WrongUse(f"fixed: names nodes that join, in order: of {known}")
        return
    try:
        policy_named(asked)
    except ValueError as error:
        raise WrongUse(f"{error}, and fixed:NODE,…") from None


def numbered(routing: str, plan: SwapPlan, addresses: Mapping[str, str]) -> str:
    """With the plan's own numbers in place of nodes' names: they follow the addresses."""
    name, _, order = routing.partition(":")
    if name != FIXED:
        return routing
    sites = [node.sites[0] for node in plan.djg.nodes]
    found = [
        str(i) for n in order.split(",") for i, site in enumerate(sites) if site == addresses[n]
    ]
    return f"{FIXED}:{','.join(found)}"


def _check(name: str, join: SwapJoin, at: Sequence[str], directory: Directory) -> None:
    nodes = [node_of(directory, home) for home in dict.fromkeys(at)]
    if len(nodes) == 1:
        raise WrongUse(
            f"{name} can't be joined across nodes: its streams are all at home at "
            f"{nodes[0].name}; submit it there without --plan swap"
        )
    if len(places := sorted({n.site for n in nodes})) > 1:
        raise WrongUse(
            f"{name} can't be joined across nodes: its streams are at sites {', '.join(places)}, "
            "and rows choose their way between nodes of one site only" + INSTEAD
        )
    streams = [leg.stream for leg in join.legs]
    if len({(s.timestamp_type.is_integer, s.resolution_us) for s in streams}) > 1:
        raise WrongUse(
            f"{name} can't be joined across nodes: its streams count time differently" + INSTEAD
        )


def _each(sites: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple((site,) for site in sites)


class Opening:
    """Makes joins begin: publications at all homes, then one mirror that the nodes feed."""

    def __init__(self, site: Site, directory: Directory, mirrors: Mirrors) -> None:
        self._site, self._directory, self._mirrors = site, directory, mirrors
        self._give_back_unread()

    @contextmanager
    def assembled(self, query: QueryDef, task: Task) -> Iterator[Assembled]:
        """The query over the join's mirror. If what is done with it fails, all is given back.
        Raises NodeAway, SiteError."""
        join = join_of(query)
        opened: list[tuple[str, str]] = []
        try:
            answers = [self._open(leg, opened) for leg in join.legs]
            first = max(a.watermark for a in answers)
            if join.from_beginning and first > BEGINNING:
                raise SiteError(
                    "its streams have begun, and what stands above the join must know it from "
                    "their beginning" + INSTEAD
                )
            found = self._query(query.name, join, task, opened, first)
            mirror = part_schema(join.part, JOINED + found.id)
            text = join_text(mirror, found, tuple(leg.column_names for leg in join.legs))
            (stream,) = compile_script(text).catalog.streams()
            pasts = {stream.name: Past(first, BEGINNING, first)}
            yield Assembled(join.above(stream), (text,), pasts, tuple(opened), ())
        except BaseException:
            self._mirrors.give_back(opened)
            self._note([])
            raise
        self._note([])

    def _open(self, leg: Leg, opened: list[tuple[str, str]]) -> Opened:
        entry = self._directory.defined()[leg.stream.name.lower()]
        reach = None if leg.window is None else leg.window + 1
        want = Wanted(Profile(leg.where, leg.column_names), reach)
        answer = self._mirrors.subscribed(entry, want)
        opened.append((entry.node, answer.publication))
        self._note(opened)
        return answer

    def _query(
        self,
        name: str,
        join: SwapJoin,
        task: Task,
        opened: Sequence[tuple[str, str]],
        first: int,
    ) -> SwapQuery:
        addresses = {n.name: n.address for n in self._directory.nodes()}
        annotated = AnnotatedJoinGraph(
            join.graph,
            _each([addresses[home] for home, _ in opened]),
            _each([addresses[node] for node in task.joined_at]),
        )
        return SwapQuery(
            new_id(name),
            annotated,
            tuple(leg.window for leg in join.legs),
            join.outputs,
            self._directory.me.address,
            first,
            tuple(publication for _, publication in opened),
            numbered(task.routing, set_up(annotated), addresses),
        )

    # --- what was opened when this node went down

    def _note(self, opened: Sequence[tuple[str, str]]) -> None:
        self._site.engine.store.write_note(_OPENING, json.dumps(opened).encode())

    def _give_back_unread(self) -> None:
        note = self._site.engine.store.note(_OPENING)
        left = [] if note is None else [(at, name) for at, name in json.loads(note)]
        mirrors = [s for s in self._site.catalog.streams() if is_joined(s)]
        read = {source for m in mirrors for source in query_of(m).sources}
        unread = [(at, name) for at, name in left if name not in read]
        if unread:
            self._mirrors.give_back(unread)
        if left:
            self._note([])
