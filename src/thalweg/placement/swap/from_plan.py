"""A query of the algebra as a join across nodes, and what is left to do above it.

Nodes join streams under `[Range]`, `[Now]` and `[Unbounded]` windows on equalities between columns.
Conditions of one stream are evaluated at its home; those between streams that are no equality, and
whatever the query does with the join, above it. What can't be joined so is refused, with the reason
and the way that works.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from thalweg.placement.swap.join_graph import Edge, JoinGraph, JoinGraphError, join_graph
from thalweg.plan import nodes
from thalweg.plan.blocks import Block, block_of, leaves_of
from thalweg.plan.catalog import StreamDef
from thalweg.plan.cutting import Place, in_its_place, places
from thalweg.plan.expr import Call, Col, Expr, Lit, columns_of, conjunction, remap, shift
from thalweg.plan.nodes import Filter, Join, Node, Project, Scan, StreamKind, ToStream, Window
from thalweg.plan.types import Kind
from thalweg.plan.windows import TimeWindow

INSTEAD = "; without --plan swap it runs, also at several nodes (--strategy in-network)"
_AS_THEY_ARE = (Kind.BOOLEAN, Kind.DOUBLE, Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP)
_WHOLE = (Kind.INTEGER, Kind.BIGINT)

Where = tuple[str, ...] | None  # as conditions of a stream's rows are told its home
# The text of a stream's conditions; None if they can't be told.
Tell = Callable[[StreamDef, Expr], Where]
# The columns of a stream on which a query's result depends; None: all.
Valued = Callable[[StreamDef], Collection[str] | None]


@dataclass(frozen=True, slots=True)
class Leg:
    """A stream of the join: which of its rows and columns come in, and for how long they count."""

    stream: StreamDef
    window: int | None  # None: for ever
    where: Where
    columns: tuple[int, ...]  # of the stream, in order

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(self.stream.fields[c].name for c in self.columns)


@dataclass(frozen=True, slots=True)
class SwapJoin:
    """Columns of edges and outputs are counted among those of their leg that come in."""

    legs: tuple[Leg, ...]
    graph: JoinGraph
    outputs: tuple[tuple[int, int], ...]
    part: Node  # the same in the algebra
    from_beginning: bool  # of no use if its streams have begun
    _query: Node
    _path: tuple[int, ...]
    _rest: tuple[Expr, ...]
    _exprs: tuple[Expr, ...]
    _names: tuple[str, ...]

    def above(self, mirror: StreamDef) -> Node:
        """The query over what the nodes have joined."""
        read: Node = in_its_place(self.part, mirror)
        if self._rest:
            read = Filter(read, conjunction(self._rest))
        return _replaced(self._query, self._path, Project(read, self._exprs, self._names))


def swap_join(plan: Node, tell: Tell, valued: Valued = lambda _: None) -> SwapJoin:
    """Raises JoinGraphError: what can't be done, and what can."""
    place = _topmost_join(plan)
    block = block_of(place.node, _leaf)
    of_leaf, between = block.conditions_by_leaf()
    edges = [edge for c in between if (edge := _edge(c, block)) is not None]
    rest = [c for c in between if _edge(c, block) is None]
    told: list[Where] = []
    for number, conditions in enumerate(of_leaf):
        stream, where = block.leaves[number][0], None
        if conditions:
            where = tell(stream, conjunction(conditions))
            if where is None:
                rest += [shift(c, block.starts[number]) for c in conditions]
        told.append(where)
    try:
        whole = join_graph(_aliases([s.name for s, _ in block.leaves]), edges)
    except JoinGraphError as error:
        raise JoinGraphError(f"{error}{INSTEAD}") from None
    exprs = [_valued(e, block, valued) for e in block.exprs()]
    shown = sorted({c for e in (*rest, *exprs) for c in columns_of(e)})
    shown = shown or [block.starts[edges[0].left] + edges[0].left_column]
    looked_at = {*shown, *(block.starts[s] + e.column(s) for e in edges for s in e.streams)}
    legs = []
    for number, (stream, window) in enumerate(block.leaves):
        start, end = block.starts[number], block.starts[number] + len(block.types[number])
        columns = tuple(c - start for c in sorted(looked_at) if start <= c < end)
        legs.append(Leg(stream, window, told[number], columns))
    graph = JoinGraph(
        whole.streams,
        tuple(_inside(e, legs) for e in whole.edges),
        tuple(_inside(e, legs) for e in whole.conditions),
    )
    outputs = []
    for column in shown:
        (leg,) = leaves_of(Col(column, block.all_columns()[column].type), block.starts)
        outputs.append((leg, legs[leg].columns.index(column - block.starts[leg])))
    position = {column: place for place, column in enumerate(shown)}
    return SwapJoin(
        tuple(legs),
        graph,
        tuple(outputs),
        _part(block, of_leaf, told, between, shown),
        place.from_beginning,
        plan,
        place.path,
        tuple(remap(e, position.__getitem__) for e in rest),
        tuple(remap(e, position.__getitem__) for e in exprs),
        tuple(f.name for f in place.node.schema),
    )


def _topmost_join(plan: Node) -> Place:
    for place in places(plan):
        node = place.node
        while isinstance(node, Filter | Project):
            node = node.input
        if isinstance(node, Join):
            return place
    if any(isinstance(n, ToStream) and n.kind is StreamKind.RSTREAM for n in nodes.walk(plan)):
        raise JoinGraphError(
            "RSTREAM speaks at the instants of all tuples, and nodes send what they have joined"
            + INSTEAD
        )
    raise JoinGraphError("it joins nothing that nodes could join" + INSTEAD)


def _leaf(node: Node) -> Block[tuple[StreamDef, int | None]]:
    match node:
        case Window(Scan(stream), TimeWindow(length, 1)) if not stream.is_placed:
            return Block(((stream, length),), (tuple(f.type for f in stream.fields),))
        case Window(Scan(stream), TimeWindow()):
            raise JoinGraphError(f"{stream.name} has a window that slides" + INSTEAD)
        case Window(Scan(stream), spec):
            raise JoinGraphError(
                f"{stream.name} has a window {spec}: when a row leaves it is not known when it "
                "comes" + INSTEAD
            )
        case Scan(stream):
            what = "table" if stream.is_table else "relation"
            raise JoinGraphError(f"{stream.name} is a {what}, and rows of streams travel" + INSTEAD)
    raise JoinGraphError(
        f"{type(node).__name__} stands below the join, and nodes join streams" + INSTEAD
    )


def _edge(condition: Expr, block: Block[tuple[StreamDef, int | None]]) -> Edge | None:
    """An equality of two columns whose values are equal as they travel if they are in SQL."""
    match condition:
        case Call("=", (Col() as left, Col() as right)):
            kinds = left.type.kind, right.type.kind
            same = left.type == right.type and kinds[0] in (*_AS_THEY_ARE, Kind.DECIMAL)
            if not same and not all(k in _WHOLE for k in kinds):
                return None
            (one,), (other,) = leaves_of(left, block.starts), leaves_of(right, block.starts)
            starts = block.starts
            return Edge(one, left.index - starts[one], other, right.index - starts[other])
    return None


def _valued(expr: Expr, block: Block[tuple[StreamDef, int | None]], valued: Valued) -> Expr:
    """NULL in place of a column that nobody looks at: it does not travel."""
    if not isinstance(expr, Col):
        return expr
    (leaf,) = leaves_of(expr, block.starts)
    stream = block.leaves[leaf][0]
    columns = valued(stream)
    is_wanted = columns is None or stream.fields[expr.index - block.starts[leaf]].name in columns
    return expr if is_wanted else Lit(None, expr.type)


def _inside(edge: Edge, legs: Sequence[Leg]) -> Edge:
    left = legs[edge.left].columns.index(edge.left_column)
    right = legs[edge.right].columns.index(edge.right_column)
    return Edge(edge.left, left, edge.right, right)


def _aliases(names: Sequence[str]) -> tuple[str, ...]:
    """A stream that is read twice is two streams of the join."""
    found: list[str] = []
    for name in names:
        count = sum(n == name or n.startswith(f"{name}#") for n in found)
        found.append(f"{name}#{count + 1}" if count else name)
    return tuple(found)


def _part(
    block: Block[tuple[StreamDef, int | None]],
    of_leaf: Sequence[Sequence[Expr]],
    told: Sequence[Where],
    between: Sequence[Expr],
    shown: Sequence[int],
) -> Node:
    leaves: list[Node] = []
    for (stream, length), conditions, where in zip(block.leaves, of_leaf, told, strict=True):
        window = Window(Scan(stream), TimeWindow(length))
        leaves.append(window if where is None else Filter(window, conjunction(list(conditions))))
    equal = [c for c in between if _edge(c, block) is not None]
    types = block.all_columns()
    columns = tuple(Col(c, types[c].type) for c in shown)
    names = tuple(f"c{i}" for i in range(len(shown)))
    return Project(Join(tuple(leaves), conjunction(equal)), columns, names)


def _replaced(plan: Node, path: tuple[int, ...], by: Node) -> Node:
    if not path:
        return by
    inputs = list(nodes.inputs_of(plan))
    inputs[path[0]] = _replaced(inputs[path[0]], path[1:], by)
    return nodes.with_inputs(plan, tuple(inputs))
