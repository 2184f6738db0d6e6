"""In whose name definitions are made and changed, where that matters.

The engine knows no users. Whoever serves them says in whose name a script is run: the author is
asked before anything is changed, and is written down beside what is new, in one transaction with
it. What nobody stands for, such as a node's own statements, is not asked about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from thalweg.engine.site.scripts import Change, Script
from thalweg.plan.catalog import Catalog, Definition


class Author(Protocol):
    @property
    def name(self) -> str: ...

    def check(self, scripts: Sequence[Script], standing: Catalog) -> None:
        """Raises where it may not do this to what stands."""

    def makes(self, definition: Definition) -> bool:
        """Whether a new definition is its own."""


_AUTHOR: ContextVar[Author | None] = ContextVar("author", default=None)


@contextmanager
def acting(author: Author) -> Iterator[None]:
    """Inside, also in threads that are started with this context, scripts are the author's."""
    token = _AUTHOR.set(author)
    try:
        yield
    finally:
        _AUTHOR.reset(token)


@contextmanager
def by_itself() -> Iterator[None]:
    """Inside, scripts are the node's own, whoever has asked for what they are good for."""
    token = _AUTHOR.set(None)
    try:
        yield
    finally:
        _AUTHOR.reset(token)


def author_now() -> Author | None:
    return _AUTHOR.get()


def made_by(
    author: Author, changes: Sequence[Change], before: Catalog, after: Catalog
) -> Iterator[str]:
    """The names of what changes make anew; what is replaced stays its owner's."""
    dropped = {id(c.definition) for c in changes if c.dropped}
    for name in dict.fromkeys(c.definition.name for c in changes if not c.dropped):
        stood, stands = before.find(name), after.find(name)
        is_new = stood is None or id(stood) in dropped
        if stands is not None and is_new and author.makes(stands):
            yield stands.name
