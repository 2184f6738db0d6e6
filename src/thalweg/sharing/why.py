"""Why two queries share work, or do not: what `explain --why` says."""

from __future__ import annotations

from collections.abc import Iterator

from thalweg.plan.expr import Expr
from thalweg.plan.nodes import Schema
from thalweg.plan.text import expr_text, window_text
from thalweg.sharing.containment import contains, equivalent
from thalweg.sharing.core import Core, NormalQuery, NotNormal
from thalweg.sharing.naming import leaf_names, named_columns
from thalweg.sharing.representative import representative
from thalweg.sharing.text import range_text, representative_text, sources_text

Query = NormalQuery | NotNormal
Names = tuple[str, str]


def why(a: Query, b: Query, names: Names = ("the first", "the second")) -> tuple[str, ...]:
    """What the two have in common and what keeps them apart, a sentence per line."""
    if isinstance(a, NotNormal) or isinstance(b, NotNormal):
        return tuple(
            f"Only windows (SteMs) can be shared with {name}: {query.reason}."
            for name, query in zip(names, (a, b), strict=True)
            if isinstance(query, NotNormal)
        )
    if (a.core, a.above, a.kind) == (b.core, b.above, b.kind):
        return ("They are the same query: it is computed once.",)
    if a.core.signature == b.core.signature:
        return tuple(_one_group(a, b, names))
    return tuple(_apart(a.core, b.core, names))


def _one_group(a: NormalQuery, b: NormalQuery, names: Names) -> Iterator[str]:
    yield f"They are in one group, computed once: {_shape(a.core)}."
    if a.core == b.core:
        yield "They select, project and join alike; what stands above is each one's own."
    yield from _differences(a.core, b.core, names)
    rep = representative([a.core, b.core])
    yield "Together they need: " + " ".join(representative_text(rep).split()) + "."
    if equivalent(a, b):
        yield "Their results are always the same."
        return
    for outer, inner, whole, part in ((b, a, names[1], names[0]), (a, b, *names)):
        answer = contains(outer, inner)
        if answer:
            yield f"Every result of {part} is one of {whole}."
        else:
            yield f"Not every result of {part} is known to be one of {whole}: {answer.reason}."


def _shape(core: Core) -> str:
    schema = named_columns(core.streams)
    joins = " and ".join(expr_text(j, schema) for j in core.joins)
    verb = "both read" if len(core.streams) == 1 else "both join"
    return f"{verb} {' and '.join(leaf_names(core.streams))}" + (f" where {joins}" if joins else "")


def _differences(a: Core, b: Core, names: Names) -> Iterator[str]:
    for name, stream, *windows in zip(
        leaf_names(a.streams), a.streams, a.windows, b.windows, strict=True
    ):
        if windows[0] != windows[1]:
            texts = [window_text(w, stream) for w in windows]
            kept = "the longer is kept, and when a row ends is computed for each"
            yield f"On {name}: {texts[0]} in {names[0]}, {texts[1]} in {names[1]}; {kept}."
    schema = named_columns(a.streams)
    ranges = [dict(core.ranges) for core in (a, b)]
    for expr in dict.fromkeys((*ranges[0], *ranges[1])):
        if ranges[0].get(expr) != ranges[1].get(expr):
            told = ", ".join(
                f"{range_text(expr, own[expr], schema) if expr in own else 'anything'} in {name}"
                for own, name in zip(ranges, names, strict=True)
            )
            yield f"On {expr_text(expr, schema)}: {told}."
    own, others = (tuple(r.condition for r in c.residuals) for c in (a, b))
    yield from _only_in_one(own, others, names, schema)


def _apart(a: Core, b: Core, names: Names) -> Iterator[str]:
    if a.streams != b.streams:
        listed = [" and ".join(leaf_names(core.streams)) for core in (a, b)]
        reads = ", ".join(f"{n} reads {r}" for n, r in zip(names, listed, strict=True))
        yield f"They are in different groups: {reads}."
    elif a.joins == b.joins:
        windows = [sources_text(core.streams, core.windows) for core in (a, b)]
        told = " and ".join(f"{w} in {n}" for n, w in zip(names, windows, strict=True))
        yield f"They are in different groups: their windows slide differently, {told}."
    else:
        yield "They are in different groups: their joins differ."
        yield from _only_in_one(a.joins, b.joins, names, named_columns(a.streams))
    shared = [s.name for s in dict.fromkeys(a.streams) if s in b.streams]
    if shared:
        yield f"They share the windows (SteMs) of {' and '.join(shared)}."
    else:
        yield "They read no stream together."


def _only_in_one(
    own: tuple[Expr, ...], others: tuple[Expr, ...], names: Names, schema: Schema
) -> Iterator[str]:
    for conditions, lacking, name in ((own, others, names[0]), (others, own, names[1])):
        for condition in conditions:
            if condition not in lacking:
                yield f"Only {name} has {expr_text(condition, schema)}."
