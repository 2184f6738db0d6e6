"""EXPLAIN: how a query is computed, as text for people and as JSON for programs.

- `logical`: the query's plan, what it means.
- `physical`: the operators that run, with their SteMs, probing orders and state.
- `spark`: the Spark job that a tick is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from thalweg.engine.site.errors import WrongUse
from thalweg.plan.catalog import QueryDef
from thalweg.plan.nodes import Node, inputs_of
from thalweg.plan.text import node_text, plan_text

if TYPE_CHECKING:
    from thalweg.engine.site.site import Site

FORMS = ("logical", "physical", "spark")


@dataclass(frozen=True, slots=True)
class Explanation:
    text: str
    data: Any

    def json(self) -> bytes:
        return msgspec.json.encode(self.data)


def explain(site: Site, what: str, form: str) -> Explanation:
    """`what` names a standing query, or is a text with queries."""
    if form not in FORMS:
        raise WrongUse(f"EXPLAIN has the forms {', '.join(FORMS)}, not {form}")
    standing = site.catalog.find(what.strip())
    if isinstance(standing, QueryDef):
        return _explained(site, standing, form)
    script = site.compiler(what, site.catalog, name="<cql>")
    if not script.queries:
        raise WrongUse("the text defines no query that could be explained")
    parts = [_explained(site, query, form) for query in script.queries]
    if len(parts) == 1:
        return parts[0]
    texts = [f"{q.name}:\n{p.text}" for q, p in zip(script.queries, parts, strict=True)]
    return Explanation("\n\n".join(texts), [p.data for p in parts])


def _explained(site: Site, query: QueryDef, form: str) -> Explanation:
    if form == "logical":
        data = {"query": query.name, "form": form, "plan": _logical(query.plan)}
        return Explanation(plan_text(query.plan), data)
    raise WrongUse(f"{form} is not there yet")


def _logical(node: Node) -> dict[str, Any]:
    return {
        "operator": type(node).__name__,
        "text": node_text(node),
        "columns": [{"name": f.name, "type": str(f.type)} for f in node.schema],
        "inputs": [_logical(child) for child in inputs_of(node)],
    }
