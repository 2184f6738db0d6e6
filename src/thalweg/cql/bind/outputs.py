"""The select list: expressions, `*` and `a.*`, with the names of the result's columns."""

from __future__ import annotations

from thalweg.cql import syntax
from thalweg.cql.bind.expressions import ExpressionBinder
from thalweg.cql.bind.names import Output, label
from thalweg.cql.errors import Mistake, did_you_mean
from thalweg.plan.expr import Col, Lit
from thalweg.plan.types import NULL


def bind_outputs(
    select: syntax.Select, keys: list[Output], binder: ExpressionBinder
) -> list[Output]:
    outputs: list[Output] = []
    for item in select.items:
        if isinstance(item, syntax.Star):
            outputs += _star(item, keys, binder)
        else:
            outputs.append(_item(item, binder))
    return outputs


def bind_order(
    order: tuple[syntax.Expr, ...], outputs: list[Output], binder: ExpressionBinder
) -> list[Output]:
    """What the rows are ordered by: result columns by their names, or expressions."""
    return [_order_column(expr, outputs, binder) for expr in order]


def _order_column(expr: syntax.Expr, outputs: list[Output], binder: ExpressionBinder) -> Output:
    if isinstance(expr, syntax.ColumnRef) and expr.qualifier is None:
        found = [o for o in outputs if o.name.lower() == expr.name.lower()]
        if len(found) == 1:
            return found[0]
    bound = binder.bind(expr)
    if isinstance(bound, Lit) or bound.type == NULL:
        hint = "positions are not counted; write the column or expression itself"
        raise Mistake("ORDER BY takes a column or expression", expr.span, hint)
    return Output(bound, label(binder.context.text, expr.span), expr.span)


def _item(item: syntax.SelectItem, binder: ExpressionBinder) -> Output:
    expr = binder.bind(item.expr)
    if item.alias is not None:
        return Output(expr, item.alias.text, item.span, is_alias=True)
    if isinstance(expr, Col) and isinstance(item.expr, syntax.ColumnRef):
        return Output(expr, expr.name, item.span, binder.scope.qualifier_of(expr.index))
    return Output(expr, label(binder.context.text, item.span), item.span)


def _star(star: syntax.Star, keys: list[Output], binder: ExpressionBinder) -> list[Output]:
    """All columns of the sources; under GROUP BY the grouping columns (COSMOS, section 1.1)."""
    scope = binder.scope
    if star.qualifier is not None and scope.source(star.qualifier) is None:
        hint = did_you_mean(star.qualifier, (s.alias for s in scope.sources if s.alias))
        raise Mistake(f'"{star.qualifier}" is not in FROM', star.span, hint)
    wanted = star.qualifier.lower() if star.qualifier is not None else None
    if keys:
        return [
            k
            for k in keys
            if wanted is None or (k.qualifier is not None and k.qualifier.lower() == wanted)
        ]
    outputs = []
    for source in scope.sources:
        if wanted is None or (source.alias is not None and source.alias.lower() == wanted):
            for index, f in enumerate(source.shown, source.offset):
                binder.uses.append((index, star.span))
                outputs.append(Output(Col(index, f.type, f.name), f.name, star.span, source.alias))
    return outputs
