"""What a query is bound against: the catalog, WITH's names, the enclosing block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from thalweg.cql import syntax
from thalweg.cql.bind.holes import Holes
from thalweg.cql.bind.scope import Scope
from thalweg.cql.errors import Mistake, Span
from thalweg.cql.units import in_words
from thalweg.plan.catalog import Catalog, Definition
from thalweg.plan.nodes import Node, Scan, resolution_us


@dataclass(slots=True)
class Findings:
    """Gathered while one statement is bound."""

    warnings: list[Mistake] = field(default_factory=list)
    resolution: tuple[int, str] | None = None  # of the first input, and its name
    reads: dict[str, Definition] = field(default_factory=dict)  # what names in FROM stood for


@dataclass(frozen=True, slots=True)
class Context:
    catalog: Catalog
    text: str
    defining: str | None = None  # the view that is being defined
    locals: Mapping[str, Node] = field(default_factory=dict)  # WITH's names, in lower case
    outer: Scope | None = None  # the enclosing block's columns
    is_correlated: bool = False  # whether WHERE may use them
    findings: Findings = field(default_factory=Findings)
    holes: Holes | None = None  # where constants of conditions are left open

    def with_local(self, name: str, node: Node) -> Context:
        return replace(self, locals={**self.locals, name.lower(): node})

    def below(self, outer: Scope, is_correlated: bool) -> Context:
        """For a sub-query in the WHERE of the block with this scope."""
        return replace(self, outer=outer, is_correlated=is_correlated)

    def uncorrelated(self) -> Context:
        """For queries inside FROM, WITH and set operators; `outer` stays for better messages."""
        return replace(self, is_correlated=False) if self.is_correlated else self

    def warn(self, message: str, span: Span, hint: str | None = None) -> None:
        self.findings.warnings.append(Mistake(message, span, hint))

    def check_resolution(self, node: Node, name: str, span: Span) -> int:
        """All inputs of a query count time in one unit. Raises Mistake at one that differs."""
        resolution = node.stream.resolution_us if isinstance(node, Scan) else resolution_us(node)
        if self.findings.resolution is None:
            self.findings.resolution = (resolution, name)
        first, first_name = self.findings.resolution
        if resolution != first:
            message = (
                f"the inputs of one query must agree on RESOLUTION: {first_name} counts in "
                f"{in_words(first)}, {name} in {in_words(resolution)}"
            )
            is_table = isinstance(node, Scan) and node.stream.is_table
            hint = f"say RESOLUTION {in_words(first)} in CREATE TABLE {name}" if is_table else None
            raise Mistake(message, span, hint)
        return resolution


BindQuery = Callable[[syntax.Query, Context], Node]
