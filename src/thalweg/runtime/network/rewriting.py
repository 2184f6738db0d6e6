"""A user's script at a node whose engine is not the site's: its queries as the site runs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from thalweg.cql import Script, parse_script, syntax
from thalweg.engine.shared.registering import Past
from thalweg.engine.site import WrongUse
from thalweg.plan.catalog import QueryDef
from thalweg.runtime.network.computing import Computing
from thalweg.runtime.network.fragments.placed_text import placed_text


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The text, and streams' pasts."""

    text: str
    pasts: Mapping[str, Past]


def rewritten(
    script: Script, text: str, pasts: Mapping[str, Past], computing: Computing, held: ExitStack
) -> Rewritten:
    """What was made for its queries is given back if they do not come to stand before `held` ends.
    Raises Refused, WrongUse."""
    if computing.engine is None or not script.queries:
        return Rewritten(text, pasts)
    parts: list[str] = []
    done, known = 0, dict(pasts)
    for statement, query in created_queries(script, text):
        if statement.mode not in (syntax.Mode.NEW, syntax.Mode.IF_NOT_EXISTS):
            raise WrongUse(
                f"{computing.engine} can't replace {query.name}: drop it, and submit it again"
            )
        if query.from_now:
            raise WrongUse(f"{query.name}: {computing.engine} takes no FROM NOW")
        made = held.enter_context(computing.computed(query.name, query.plan, known))
        known = dict(made.pasts)
        start, end = statement.span
        written = placed_text(query.name, made.plan, text[statement.query.span[0] : end])
        # Right before it: a stream that it reads may be made by the same text.
        parts += (text[done:start], *(f"{t}; " for t in made.texts), written)
        done = end
    return Rewritten("".join(parts) + text[done:], known)


def created_queries(script: Script, text: str) -> Iterator[tuple[syntax.CreateQuery, QueryDef]]:
    """The statements of a text that make queries, and what they make."""
    created = [s for s in parse_script(text) if isinstance(s, syntax.CreateQuery)]
    named = {s.name.text.lower() for s in created if s.name is not None}
    fresh = {q.name.lower(): q for q in script.queries}
    bare = (q for key, q in fresh.items() if key not in named)
    for statement in created:
        query = next(bare) if statement.name is None else fresh.get(statement.name.text.lower())
        if query is not None:  # otherwise it is there
            yield statement, query
