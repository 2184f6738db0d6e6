"""A compiled script, as far as a site looks into it. The compiler comes from outside: the engine
knows plans, not the language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from thalweg.plan.catalog import Catalog, Definition, QueryDef, StreamDef
from thalweg.plan.expr import Expr


class Change(Protocol):
    @property
    def definition(self) -> Definition: ...

    @property
    def dropped(self) -> bool: ...

    @property
    def replaced(self) -> Definition | None: ...  # what stood under this name

    @property
    def text(self) -> str: ...  # a statement that makes it anew


class Write(Protocol):
    """Rows, by column, that are put into a stream or table; or which of a table's rows go."""

    @property
    def stream(self) -> StreamDef: ...

    @property
    def columns(self) -> Sequence[str]: ...

    @property
    def rows(self) -> Sequence[Sequence[Any]]: ...

    @property
    def gone(self) -> Expr | None: ...


class Script(Protocol):
    @property
    def catalog(self) -> Catalog: ...

    @property
    def queries(self) -> Sequence[QueryDef]: ...

    @property
    def changes(self) -> Sequence[Change]: ...

    @property
    def warnings(self) -> Sequence[Any]: ...

    @property
    def errors(self) -> Sequence[Any]: ...  # of statements that were left out

    @property
    def writes(self) -> Sequence[Write]: ...

    @property
    def notes(self) -> Sequence[str]: ...  # about statements that change nothing

    @property
    def kept(self) -> Sequence[QueryDef]: ...  # queries that such statements have found


class Compiler(Protocol):
    def __call__(self, text: str, catalog: Catalog, *, name: str) -> Script: ...


CompileEach = Callable[[Sequence[str], Catalog], Sequence[Script]]


@dataclass(frozen=True, slots=True)
class Text:
    """CQL; relative paths in it start at the folder, or at the site's own."""

    cql: str
    folder: Path | None = None


# Scripts of the catalog as it is, and the texts of which they are.
Compiled = Callable[[Catalog], tuple[Sequence[Script], Sequence[Text]]]
