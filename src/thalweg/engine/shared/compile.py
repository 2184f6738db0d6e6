"""From a logical plan to physical operators.

Select-project-join blocks are collected into one n-way Join whatever their nesting; predicates go
to the input that they speak of. Sub-query predicates and left joins become joins with the distinct
values that have a match, and bag differences, so that the kernels know no correlation:

    L semi-join R on θ  =  L ⋈ distinct(values of L's columns in θ that have a match in R)
    L anti-join R       =  L  −  (L semi-join R)
    L left join R       =  (L ⋈ R)  ∪  (L anti-join R, NULLs appended)
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.engine.shared import physical as ph
from thalweg.plan import nodes
from thalweg.plan.expr import (
    FALSE,
    TRUE,
    Call,
    Col,
    Expr,
    Lit,
    columns_of,
    conjunction,
    conjuncts,
    remap,
    shift,
    substitute,
    transform,
)
from thalweg.plan.nodes import SetKind
from thalweg.plan.types import BOOLEAN
from thalweg.plan.windows import UNBOUNDED, RowsWindow, TimeWindow

SAME = "<=>"  # equal, or both NULL; for columns that stand for themselves


def compile_query(plan: nodes.Node) -> ph.Output:
    """What a query emits: its relation's changelog, or the stream that it is."""
    if isinstance(plan, nodes.ToStream):
        inner = _by_row(_relation(plan.input))
        return ph.Output(inner, plan.kind, _heard(inner, plan.kind))
    if plan.is_stream:
        everything = nodes.Window(plan, UNBOUNDED)
        return ph.Output(_by_row(_relation(everything)), nodes.StreamKind.ISTREAM)
    return ph.Output(_by_row(_relation(plan)), None)


@dataclass(frozen=True, slots=True)
class _Block:
    """A select-project-join block: leaves side by side, conditions and outputs over them."""

    leaves: tuple[ph.Op, ...]
    conditions: tuple[Expr, ...]
    exprs: tuple[Expr, ...]

    @property
    def width(self) -> int:
        return sum(len(leaf.types) for leaf in self.leaves)


def _relation(node: nodes.Node) -> ph.Op:
    return _close(_block(node))


def _identity(op: ph.AnyOp) -> tuple[Expr, ...]:
    return tuple(Col(i, t) for i, t in enumerate(op.types))


def _leaf(op: ph.Op) -> _Block:
    return _Block((op,), (), _identity(op))


def _block(node: nodes.Node) -> _Block:
    match node:
        case nodes.Filter(nodes.Mark() as mark, predicate):
            return _filtered_mark(mark, predicate)
        case nodes.Filter(source, predicate):
            inner = _block(source)
            added = tuple(_nameless(substitute(c, inner.exprs)) for c in conjuncts(predicate))
            return _Block(inner.leaves, inner.conditions + added, inner.exprs)
        case nodes.Project(source, exprs, _):
            inner = _block(source)
            outputs = tuple(_nameless(substitute(e, inner.exprs)) for e in exprs)
            return _Block(inner.leaves, inner.conditions, outputs)
        case nodes.Join(inputs, condition):
            joined = _Block((), (), ())
            for part in map(_block, inputs):
                by = joined.width
                joined = _Block(
                    joined.leaves + part.leaves,
                    joined.conditions + tuple(shift(c, by) for c in part.conditions),
                    joined.exprs + tuple(shift(e, by) for e in part.exprs),
                )
            added = tuple(_nameless(substitute(c, joined.exprs)) for c in conjuncts(condition))
            return _Block(joined.leaves, joined.conditions + added, joined.exprs)
        case nodes.Window(nodes.Scan(stream), TimeWindow() as spec):
            return _leaf(ph.Source(stream.name, _types(node), spec))
        case nodes.Window(source, spec):
            return _leaf(_window(source, spec))
        case nodes.Scan(stream):
            changes = ph.BaseStream(stream.name, _types(node), signed=True)
            return _leaf(ph.Changes(ph.Exchange(changes, _identity(changes))))
        case nodes.Aggregate(source, keys, aggregates, _):
            inner = _relation(source)
            return _leaf(_aggregate(inner, keys, aggregates))
        case nodes.Distinct(source):
            return _leaf(_distinct(_relation(source)))
        case nodes.SetOp():
            return _leaf(_set_op(node))
        case nodes.LeftJoin(left, right, condition):
            return _leaf(_left_join(_relation(left), _relation(right), _nameless(condition)))
        case nodes.Mark():
            return _leaf(_marked(node))
        case nodes.ToStream():
            raise AssertionError("a stream under a relation has a window above it")


def _types(node: nodes.Node) -> tuple:
    return tuple(f.type for f in node.schema)


def _nameless(expr: Expr) -> Expr:
    """Column names are for people; equal operators must not differ by them."""
    return transform(expr, lambda e: Col(e.index, e.type) if isinstance(e, Col) else e)


def _window(source: nodes.Node, spec: RowsWindow | TimeWindow) -> ph.Op:
    if isinstance(source, nodes.Scan):
        assert isinstance(spec, RowsWindow)
        return _rows(ph.BaseStream(source.stream.name, _types(source)), spec)
    assert isinstance(source, nodes.ToStream)
    inner = _by_row(_relation(source.input))
    derived = ph.StreamOf(source.kind, inner, _heard(inner, source.kind))
    return _rows(derived, spec) if isinstance(spec, RowsWindow) else ph.TimeOf(derived, spec)


def _heard(inner: ph.Op, kind: nodes.StreamKind) -> tuple[ph.Exchange, ...]:
    """The base relations whose accepted changes are RSTREAM's instants."""
    if kind is not nodes.StreamKind.RSTREAM:
        return ()
    found = dict.fromkeys(op for op in ph.walk(inner) if isinstance(op, ph.Changes))
    return tuple(ph.Exchange(op, None) for op in found)


def _rows(stream: ph.StreamOp, spec: RowsWindow) -> ph.Op:
    keys = tuple(Col(k, stream.types[k]) for k in spec.partition_by)
    return ph.RowsOf(ph.Exchange(stream, keys), spec)


# --- closing a block ----------------------------------------------------------------------------


def _close(block: _Block) -> ph.Op:
    """Push predicates to their leaves, then one Map or one Join."""
    offsets = [0]
    for leaf in block.leaves:
        offsets.append(offsets[-1] + len(leaf.types))

    def owners(e: Expr) -> frozenset[int]:
        return frozenset(
            next(i for i in range(len(block.leaves)) if offsets[i] <= c < offsets[i + 1])
            for c in columns_of(e)
        )

    local: dict[int, list[Expr]] = {i: [] for i in range(len(block.leaves))}
    across: list[Expr] = []
    for condition in dict.fromkeys(block.conditions):
        of = owners(condition)
        if len(of) <= 1:
            # A condition without columns (a constant) may stand at any one input.
            home = next(iter(of), 0)
            local[home].append(shift(condition, -offsets[home]))
        else:
            across.append(condition)
    leaves = tuple(_filtered(leaf, local[i]) for i, leaf in enumerate(block.leaves))
    if len(leaves) == 1:
        return _mapped(leaves[0], block.exprs)
    leaves = tuple(_stored(leaf) for leaf in leaves)
    return ph.Join(leaves, _join_keys(across, offsets, owners), tuple(across), block.exprs)


def _filtered(leaf: ph.Op, predicates: list[Expr]) -> ph.Op:
    if not predicates:
        return leaf
    if isinstance(leaf, ph.Source):
        predicate = conjunction([leaf.predicate, *predicates])
        return ph.Source(leaf.stream, leaf.types, leaf.window, predicate)
    return ph.Map(leaf, conjunction(predicates), _identity(leaf))


def _mapped(op: ph.Op, exprs: tuple[Expr, ...]) -> ph.Op:
    if exprs == _identity(op):
        return op
    if isinstance(op, ph.Map) and op.exprs == _identity(op.input):
        return ph.Map(op.input, op.predicate, exprs)
    return ph.Map(op, TRUE, exprs)


def _stored(leaf: ph.Op) -> ph.Op:
    """A join input: a SteM on a base stream, or a derived relation that every task hears of."""
    return leaf if isinstance(leaf, ph.Source) else ph.Exchange(leaf, None)


def _join_keys(conditions: list[Expr], offsets: list[int], owners) -> tuple[ph.JoinKey, ...]:  # type: ignore[no-untyped-def]
    """Classes of columns that the equalities make equal, by union-find over (input, column)."""
    classes: list[set[tuple[int, Expr]]] = []
    for c in conditions:
        if not (isinstance(c, Call) and c.function in ("=", SAME)):
            continue
        sides = [(owners(a), a) for a in c.args]
        if any(len(of) != 1 for of, _ in sides) or sides[0][0] == sides[1][0]:
            continue
        ends = {(next(iter(of)), shift(a, -offsets[next(iter(of))])) for of, a in sides}
        touched = [k for k in classes if k & ends]
        classes = [k for k in classes if not k & ends]
        classes.append(ends.union(*touched))
    ordered = (tuple(sorted(k, key=lambda m: (m[0], repr(m[1])))) for k in classes)
    return tuple(sorted((ph.JoinKey(m) for m in ordered), key=repr))


# --- keyed operators ----------------------------------------------------------------------------


def _by_row(op: ph.Op) -> ph.Exchange:
    """Equal rows meet in one task."""
    return ph.Exchange(op, _identity(op))


def _aggregate(inner: ph.Op, keys, aggregates) -> ph.Op:  # type: ignore[no-untyped-def]
    keys = tuple(_nameless(k) for k in keys)
    calls = tuple(
        type(a)(a.function, None if a.arg is None else _nameless(a.arg), a.distinct)
        for a in aggregates
    )
    return ph.Aggregate(ph.Exchange(inner, keys), keys, calls)


def _distinct(inner: ph.Op) -> ph.Op:
    return ph.Distinct(_by_row(inner))


def _set_op(node: nodes.SetOp) -> ph.Op:
    left, right = _relation(node.left), _relation(node.right)
    if node.kind is SetKind.UNION:
        union = ph.Union(((1, left), (1, right)))
        return union if node.all else _distinct(union)
    return ph.SetOp(node.kind, node.all, _by_row(left), _by_row(right))


# --- sub-query predicates and outer joins -------------------------------------------------------


def _semi(left: ph.Op, right: ph.Op, theta: Expr) -> ph.Op:
    """Left rows with at least one right row for which θ is true."""
    width = len(left.types)
    equal: list[tuple[Expr, Expr]] = []
    of_right: list[Expr] = []
    for c in conjuncts(theta):
        if columns_of(c) and min(columns_of(c)) >= width:
            of_right.append(shift(c, -width))
            continue
        pair = _equality(c, width)
        if pair is None:
            return _semi_general(left, right, theta)
        equal.append(pair)
    values = tuple(r for _, r in equal) or (TRUE,)
    matched = _distinct(_close_map(right, of_right, values))
    conditions = tuple(
        Call("=", (a, Col(width + i, b.type)), BOOLEAN) for i, (a, b) in enumerate(equal)
    )
    return _close(_Block((left, matched), conditions, _identity(left)))


def _equality(c: Expr, width: int) -> tuple[Expr, Expr] | None:
    """`left expression = right expression`, the right one over the right side's own columns."""
    if not (isinstance(c, Call) and c.function == "="):
        return None
    a, b = c.args
    if columns_of(a) and min(columns_of(a)) >= width:
        a, b = b, a
    if not columns_of(a) or not columns_of(b):
        return None
    if max(columns_of(a)) < width <= min(columns_of(b)):
        return a, shift(b, -width)
    return None


def _semi_general(left: ph.Op, right: ph.Op, theta: Expr) -> ph.Op:
    """By the distinct values of the left columns that θ looks at."""
    width = len(left.types)
    seen = sorted(c for c in columns_of(theta) if c < width)
    values = tuple(Col(c, left.types[c]) for c in seen) or (TRUE,)
    asked = _distinct(_close_map(left, [], values))
    place = {c: i for i, c in enumerate(seen)}
    moved = remap(theta, lambda c: place[c] if c < width else c - width + len(values))
    answered = _close(_Block((asked, right), conjuncts(moved), _identity(asked)))
    matched = _distinct(answered)
    conditions = tuple(
        Call(SAME, (Col(c, left.types[c]), Col(width + i, left.types[c])), BOOLEAN)
        for i, c in enumerate(seen)
    )
    return _close(_Block((left, matched), conditions, _identity(left)))


def _close_map(op: ph.Op, predicates: list[Expr], exprs: tuple[Expr, ...]) -> ph.Op:
    return _close(_Block((op,), tuple(predicates), exprs))


def _minus(left: ph.Op, right: ph.Op) -> ph.Op:
    return ph.Union(((1, left), (-1, right)))


def _left_join(left: ph.Op, right: ph.Op, theta: Expr) -> ph.Op:
    both = _identity(left) + tuple(shift(e, len(left.types)) for e in _identity(right))
    matched = _close(_Block((left, right), conjuncts(theta), both))
    alone = _minus(left, _semi(left, right, theta))
    nulls = tuple(Lit(None, t) for t in right.types)
    return ph.Union(((1, matched), (1, _mapped(alone, _identity(left) + nulls))))


def _filtered_mark(mark: nodes.Mark, predicate: Expr) -> _Block:
    """WHERE over a sub-query predicate: a semi- or anti-join where the mark stands by itself."""
    column = len(mark.input.schema)
    parts = conjuncts(predicate)
    below = [p for p in parts if column not in columns_of(p)]
    direct = [p for p in parts if p not in below]
    source = nodes.Filter(mark.input, conjunction(below)) if below else mark.input
    theta = conjunction(
        [mark.correlation] if mark.match is None else [mark.correlation, mark.match]
    )
    here = Col(column, BOOLEAN)
    if direct == [here]:
        kept = _semi(_relation(source), _relation(mark.subquery), _nameless(theta))
        return _appended(kept, TRUE)
    if direct == [Call("not", (here,), BOOLEAN)]:
        left, right = _relation(source), _relation(mark.subquery)
        return _appended(_minus(left, _semi(left, right, _nameless(_possible(mark)))), FALSE)
    marked = nodes.Mark(source, mark.subquery, mark.correlation, mark.match)
    inner = _leaf(_marked(marked))
    return _Block(inner.leaves, tuple(_nameless(p) for p in direct), inner.exprs)


def _appended(op: ph.Op, value: Expr) -> _Block:
    return _Block((op,), (), (*_identity(op), value))


def _possible(mark: nodes.Mark) -> Expr:
    """When a row of the sub-query keeps NOT IN or NOT EXISTS from being true."""
    if mark.match is None:
        return mark.correlation
    unknown = Call("is_null", (mark.match,), BOOLEAN)
    return conjunction([mark.correlation, Call("or", (mark.match, unknown), BOOLEAN)])


def _marked(mark: nodes.Mark) -> ph.Op:
    """All input rows with their mark: those with true, those with NULL, and the rest."""
    left, right = _relation(mark.input), _relation(mark.subquery)
    sure = mark.correlation if mark.match is None else conjunction([mark.correlation, mark.match])
    true = _semi(left, right, _nameless(sure))
    possible = true if mark.match is None else _semi(left, right, _nameless(_possible(mark)))
    parts = [(1, _mapped(true, (*_identity(left), TRUE)))]
    if mark.match is not None:
        unknown = _minus(possible, true)
        parts.append((1, _mapped(unknown, (*_identity(left), Lit(None, BOOLEAN)))))
    parts.append((1, _mapped(_minus(left, possible), (*_identity(left), FALSE))))
    return ph.Union(tuple(parts))
