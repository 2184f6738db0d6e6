"""Streams that this node hands out to others: its own, and those that it has from elsewhere.

A stream of another node is handed out from this node's mirror of it: rows are the same ones, with
the same instants, positions and frontiers, since a mirror keeps them. If the reader wants rows that
the mirror does not have, the mirror first gets more from its own publisher, from an instant on, and
the reader begins there. If there is no mirror, one is made for the reader's sake: that is a broker.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from thalweg.engine.shared.registering import Past
from thalweg.engine.site import Site, SiteError
from thalweg.engine.site.publications import (
    Publications,
    is_mirror,
    labels_of,
    publication_name,
)
from thalweg.engine.site.status import instant_words
from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.holding import Holding
from thalweg.runtime.data.messages import Carry, Hang, Hung, Label, LabelledAs, Open
from thalweg.runtime.data.profiles import Profile
from thalweg.runtime.data.server import CannotPublish
from thalweg.runtime.network.definitions import stream_of
from thalweg.runtime.network.directory import Directory
from thalweg.runtime.network.labels.labelling import Labelling
from thalweg.runtime.network.labels.labels import fed_entry
from thalweg.runtime.network.mirrors.mirrored import NodeAway
from thalweg.runtime.network.mirrors.mirrors import Mirrors


class Hangs(Protocol):
    """Who knows how the trees of streams hang."""

    def above(self, stream: str) -> tuple[str, ...]:
        """The nodes by way of which this one has a stream."""
        ...

    def parent_of(self, asked: Hang) -> Hung:
        """Under whom a reader of a stream of this node shall hang, and whether it may."""
        ...

    def carry(self, stream: str) -> None:
        """Somebody is about to ask for a stream."""


class _NoTrees:
    def above(self, stream: str) -> tuple[str, ...]:
        return ()

    def parent_of(self, asked: Hang) -> Hung:
        raise CannotPublish("this node has no trees")

    def carry(self, stream: str) -> None:
        raise CannotPublish("this node has no trees")


class Relaying:
    """`made` is held while a mirror is made that was not there; `tidy` gives back what nothing
    reads any more, some time later."""

    def __init__(
        self,
        site: Site,
        directory: Directory,
        mirrors: Mirrors,
        publications: Publications,
        tidy: Callable[[], None],
        made: AbstractContextManager[object],
        labelling: Labelling | None = None,
    ) -> None:
        self._site, self._directory, self._mirrors = site, directory, mirrors
        self._publications, self._tidy, self._made = publications, tidy, made
        self.hangs: Hangs = _NoTrees()
        self._labelling = labelling
        self.holding = Holding(site)

    def open(self, asked: Open) -> tuple[str, Past]:
        """Raises CannotPublish."""
        known = self._site.catalog.find(asked.stream)
        try:
            if isinstance(known, StreamDef) and not is_mirror(known):
                if labels_of(known) is None or self._labelling is None:
                    return self._publish(known, asked, None)
                with self._labelling.beginning(known, asked.where) as begins:
                    return self._publish(known, asked, begins)
            return self._pass_on(asked)
        except SiteError as error:
            raise CannotPublish(str(error), later=isinstance(error, NodeAway)) from None

    def acknowledge(self, publication: str, held_from: int) -> None:
        self.holding.acknowledge(publication, held_from)

    def closed(self, publication: str) -> None:
        self.holding.end(publication)
        self._tidy()

    def gone(self, publication: str) -> None:
        """Its reader will not come back; those who read from it may."""
        self.holding.orphan(publication)

    def label(self, asked: Label) -> LabelledAs:
        if self._labelling is None:
            raise CannotPublish("this node labels nothing")
        return self._labelling.label(asked)

    def hang(self, asked: Hang) -> Hung:
        return self.hangs.parent_of(asked)

    def carry(self, asked: Carry) -> None:
        self.hangs.carry(asked.stream)

    # --- what has its home elsewhere

    def _pass_on(self, asked: Open) -> tuple[str, Past]:
        me = self._directory.me.name
        if not self._mirrors.trees:
            raise CannotPublish(f"{asked.stream} is not at home at {me}, which has no trees")
        entry = fed_entry(self._directory.defined(), asked.stream)
        if entry is None or entry.node == me:
            raise CannotPublish(f"there is no stream {asked.stream} at {me}, nor elsewhere")
        if asked.reader in (entry.node, *self.hangs.above(entry.name)):
            raise CannotPublish(f"{me} itself has {entry.name} by way of {asked.reader}")
        with self._mirrors.changing(entry.name):
            here = self._site.catalog.find(entry.name)
            if isinstance(here, StreamDef):
                self._mirrors.add_columns(here, stream_of(entry))
                here = self._site.stream(here.name)
                begins = self._mirrors.widen(here, entry, Profile(asked.where, asked.columns))
                if asked.since is not None:
                    self._check_rows(here, asked.since)
                return self._publish(here, asked, _at(begins))
            if asked.since is not None:
                known = stream_of(entry)
                told = known.resolution_us, known.timestamp_type.is_temporal
                since = instant_words(asked.since, *told)
                raise CannotPublish(f"{me} does not have {entry.name} from {since} on")
            with self._made:
                text, past = self._mirrors.begin(entry, Profile(asked.where, asked.columns))
                self._site.execute(f"{text};", pasts={entry.name: past})
                return self._publish(self._site.stream(entry.name), asked, _at(past))

    def _check_rows(self, mirror: StreamDef, since: int) -> None:
        """That all rows are here, from an instant of the past on, that anybody is told of."""
        first = self._mirrors.routes(mirror)[-1].has_rows_from
        if since < first:
            raise CannotPublish(f"it has these rows of {mirror.name} from {first} on only")

    # ---

    def _publish(self, stream: StreamDef, asked: Open, begins: Past | None) -> tuple[str, Past]:
        """`begins`: where the mirror begins to have what is asked for, if that is to come yet."""
        name = publication_name(stream.name, asked.reader, asked.number)
        if self._site.catalog.find(name) is not None:  # asked again
            return self._open(stream, asked, None)
        if asked.held and not self._site.engine.holds.of(name):
            known = [i for i in (asked.since, asked.held_from) if i is not None]
            self.holding.begin(name, stream.name, min(known, default=None))
        try:
            if asked.since is not None:
                begins = Past(asked.since)
            elif begins is not None and begins.watermark <= BEGINNING:
                begins = None
            opened = self._open(stream, asked, begins)
            if asked.since is not None:
                self._check_kept(stream, asked.since, asked.columns)
        except BaseException:
            self._publications.close(name)
            self.holding.end(name)
            raise
        return opened

    def _open(self, stream: StreamDef, asked: Open, begins: Past | None) -> tuple[str, Past]:
        return self._publications.open(
            stream.name,
            asked.reader,
            asked.number,
            asked.reach,
            asked.where,
            columns=asked.columns,
            past=begins,
        )

    def _check_kept(self, stream: StreamDef, since: int, wanted: tuple[str, ...] | None) -> None:
        """That what was handed out from an instant of the past on is all that there was."""
        columns = [i for i, f in enumerate(stream.fields) if wanted is None or f.name in wanted]
        first = self._site.engine.store.inputs.complete_from(stream.name, columns)
        if first > since:
            told = stream.resolution_us, stream.timestamp_type.is_temporal
            begins, wanted_from = (instant_words(i, *told) for i in (first, since))
            raise CannotPublish(
                f"{self._directory.me.name} has {stream.name} from {begins} on only, "
                f"and not from {wanted_from}"
            )


def _at(past: Past | None) -> Past | None:
    """Where a mirror begins to have rows: its readers have none of what was before."""
    return None if past is None else Past(past.watermark)
