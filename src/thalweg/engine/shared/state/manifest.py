"""The segments that count: SteMs and operator state, as of the last tick.

A segment that the manifest does not list does not exist; a file goes when none of its segments is
listed, and it holds no results that are retained.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from thalweg.engine.shared.state.names import Table, state_owner, stem_stream
from thalweg.engine.shared.state.segments import Segment, tick_of
from thalweg.engine.shared.state.store import Store

Segments = dict[tuple[str, int], Segment]


class Manifest:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.folder = store.files / "segments"
        self.segments: Segments = {}
        self._listed_before: set[str] = set()  # files that `clear_away` has to look at
        self._with_results = store.outputs.files_of_state()
        self.reread()

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.segments.values())

    def of(self, table: Table) -> list[Segment]:
        return [s for s in self if s.table == table]

    def reread(self) -> None:
        """What the book lists, after a change that was taken back."""
        self.segments = {s.key: s for s in self._store.segments()}

    def write(self, kept: Mapping[tuple[str, int], Segment]) -> None:
        """List these and no others; inside a transaction, to be followed by `replace`."""
        self._store.change_segments(
            [s for key, s in kept.items() if key not in self.segments],
            [key for key in self.segments if key not in kept],
        )

    def replace(self, kept: Segments) -> None:
        """The transaction is a fact; files that nobody needs go with `clear_away`."""
        self._listed_before.update(bundle for bundle, _ in self.segments)
        self.segments = kept

    def clear_away(self) -> None:
        """Remove the files of segments that are listed no longer."""
        before, self._listed_before = self._listed_before, set()
        self.folder.replace(before, self.live())

    def live(self) -> set[str]:
        """The files that somebody needs."""
        return {bundle for bundle, _ in self.segments} | self._with_results

    def hold(self, files: Iterable[str]) -> None:
        """The last tick's files in which there are results, too."""
        self._with_results.update(files)

    def let_go(self, files: Iterable[str], upto: int) -> None:
        """Of these files, and of those of ticks up to one, the results are of no use any more."""
        past = {f for f in self._with_results if tick_of(f) <= upto} if upto else set()
        self._with_results -= past
        self._listed_before.update(past, files)

    def adopt(self, segments: Iterable[Segment]) -> None:
        """State that no tick has written."""
        added = {s.key: s for s in segments}
        self._store.change_segments(added.values(), [])
        self.segments |= added

    def drop(self, segments: Iterable[Segment]) -> None:
        """State that is replaced; its files go with the next tick."""
        gone = [s.key for s in segments]
        self._store.change_segments([], gone)
        for key in gone:
            del self.segments[key]

    def sweep(self, flows: Collection[str]) -> None:
        """Without a tick: what operators of other flows remember is listed no longer, and files
        that nobody needs go."""
        owners = {key: state_owner(s.table) for key, s in self.segments.items()}
        gone = [key for key, owner in owners.items() if owner is not None and owner[0] not in flows]
        if gone:
            self.drop(self.segments[key] for key in gone)
        self.folder.replace((), self.live())

    def purge_stream(self, stream: str) -> None:
        """The SteMs of a stream that is dropped."""
        gone = [key for key, s in self.segments.items() if stem_stream(s.table) == stream]
        self._store.change_segments([], gone)
        for key in gone:
            del self.segments[key]
