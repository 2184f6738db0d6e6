"""What a node has, as the network is told of it, and what others have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from thalweg.cql.bind.dependencies import names_read
from thalweg.cql.errors import Mistake
from thalweg.cql.lexer import Kind, tokenize
from thalweg.engine.site import Site, WrongUse
from thalweg.engine.site.book import kind_of
from thalweg.engine.site.publications import is_internal, is_mirror
from thalweg.engine.site.scripts import Change
from thalweg.plan.catalog import Definition, StreamDef, ViewDef
from thalweg.plan.travelling import without_plan
from thalweg.runtime.data.statements import quoted, schema_text
from thalweg.runtime.network.directory import FED, VIEW, Defined, Directory
from thalweg.runtime.network.mirrors.mirrored import home_of

_MOST_NAMED = 5


class OwnDefinitions:
    def __init__(self, site: Site, directory: Directory) -> None:
        self._site, self._directory, self._me = site, directory, directory.me.name

    def elsewhere(self) -> dict[str, Defined]:
        """What other nodes have; by lower-cased name."""
        return {k: d for k, d in self._directory.defined().items() if d.node != self._me}

    def is_own(self, definition: Definition) -> bool:
        """Whether it was made here, and not for the network's sake."""
        if is_internal(definition):
            return False
        entry = self._directory.defined().get(definition.name.lower())
        is_copy = isinstance(definition, ViewDef) and entry is not None and entry.kind == VIEW
        return not (is_copy and entry is not None and entry.node != self._me)

    # --- names that another node had first

    def renamed(self) -> dict[str, Defined]:
        """Own ones that the network calls otherwise than this node; by lower-cased name."""
        known = self._directory.defined().items()
        return {k: d for k, d in known if d.node == self._me and d.is_renamed}

    def check_none(self) -> None:
        """Raises WrongUse while there are some: then their node does not leave."""
        own = self.all()
        if own:
            named = ", ".join(f"{kind_of(d)} {d.name}" for d in own[:_MOST_NAMED])
            more = f" and {len(own) - _MOST_NAMED} more" if len(own) > _MOST_NAMED else ""
            raise WrongUse(
                f"{self._me} still has {named}{more}: drop them, and submit queries "
                "at another node first"
            )

    def name_here(self, name: str) -> str | None:
        """What this node calls one of its own that the network knows as `name@node`."""
        entry = self.renamed().get(name.lower())
        return None if entry is None else entry.own_name

    def aliases(self) -> dict[str, Definition]:
        """Own ones under the network's names for them."""
        found = ((k, d, self._site.catalog.find(d.own_name)) for k, d in self.renamed().items())
        return {k: _called(own, d.name) for k, d, own in found if own is not None}

    def as_here(self, text: str) -> str:
        """With this node's own names in the place of the network's."""
        renamed = self.renamed()
        if not renamed:
            return text
        try:
            tokens = tokenize(text)
        except Mistake:
            return text  # who compiles it says what is wrong
        made, done = "", 0
        for token in tokens:
            if token.kind is Kind.QUOTED and (entry := renamed.get(token.value.lower())):
                made += text[done : token.start] + quoted(entry.own_name)
                done = token.end
        return made + text[done:]

    def check_read(self, text: str) -> None:
        """Raises WrongUse if a text reads something whose name means another thing here."""
        defined = self._directory.defined()
        for name in sorted(names_read(text)):
            entry = defined.get(name)
            if entry is None or entry.node == self._me or entry.kind not in (*FED, VIEW):
                continue
            if entry.is_renamed:
                raise WrongUse(
                    f"{entry.name} lost its name to another definition, and is read at its own "
                    f"node only: submit this at {entry.node} (--at {entry.node})"
                )
            here = self._site.catalog.find(name)
            is_other = isinstance(here, StreamDef) and (
                home_of(here) != entry.node if is_mirror(here) else self.is_own(here)
            )
            if is_other:
                raise WrongUse(
                    f"{entry.name} is at node {entry.node}, and {self._me} reads or has another "
                    f"one of that name: submit this at {entry.node} (--at {entry.node})"
                )

    # --- what there is

    def all(self) -> list[Definition]:
        return [d for d in self._site.catalog.definitions.values() if self.is_own(d)]

    def of(self, names: Iterable[str]) -> list[tuple[str, str, str]]:
        """What this node has of these: name, kind and text."""
        found = (self._site.catalog.find(name) for name in names)
        own = (d for d in found if d is not None and self.is_own(d))
        return [(d.name, kind_of(d), self._text_of(d)) for d in own]

    def tell(self, changes: Sequence[Change]) -> None:
        """The network learns what this node has."""
        texts = self._texts() if len(changes) > 1 else None
        made = {c.definition.name: c.definition for c in changes if not c.dropped}
        gone = {c.definition.name for c in changes if c.dropped} - made.keys()
        had = [(d.name, kind_of(d), self._text_of(d, texts)) for d in made.values()]
        self._directory.change(had, sorted(gone))

    def reconcile(self) -> None:
        """After a crash between a change and the news of it."""
        known = {k: d for k, d in self._directory.defined().items() if d.node == self._me}
        texts = self._texts()
        had = [(d.name, kind_of(d), self._text_of(d, texts)) for d in self.all()]
        news = [
            (name, kind, text)
            for name, kind, text in had
            if (e := known.get(name.lower())) is None or (e.kind, e.text) != (kind, text)
        ]
        here = {name.lower() for name, _, _ in had}
        self._directory.change(news, [e.name for key, e in known.items() if key not in here])

    def _text_of(self, definition: Definition, texts: Mapping[str, str] | None = None) -> str:
        if isinstance(definition, StreamDef):
            return schema_text(definition)
        return without_plan((self._texts() if texts is None else texts).get(definition.name, ""))

    def _texts(self) -> dict[str, str]:
        return {name: text for name, _, text in self._site.book.definitions()}


def _called(definition: Definition, name: str) -> Definition:
    made: Definition = replace(definition, name=name)  # type: ignore[type-var]
    return made
