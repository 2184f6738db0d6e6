"""A table that is told to one other node, change by change, and the copy that the other keeps.

Changes are numbered. A report says which change it follows on; the copy takes it only then, and
answers with the number that it has reached, so that nothing is told twice for long, nothing is
skipped, and who starts with nothing (a new parent, a restarted one) gets everything.
"""

from __future__ import annotations

from collections.abc import Mapping

from thalweg.overlay.distribution.entries import Entry, key_of
from thalweg.overlay.distribution.messages import Report


class Ledger:
    __slots__ = ("_changed", "_forgotten", "_removed", "entries", "version")

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.version = 0
        self._changed: dict[str, int] = {}  # key -> number of its last change, in that order
        self._removed: dict[str, int] = {}  # those of them that are removals
        self._forgotten = 0  # removals up to this change are no longer known

    def put(self, key: str, entry: Entry | None) -> None:
        """None removes."""
        if self.entries.get(key) == entry:
            return
        if entry is None:
            del self.entries[key]
        else:
            self.entries[key] = entry
        self.version += 1
        self._changed.pop(key, None)
        self._changed[key] = self.version
        self._removed.pop(key, None)
        if entry is None:
            self._removed[key] = self.version

    def report(self, life: int, since: int) -> Report:
        """What changed after change number `since`."""
        if since < self._forgotten or since > self.version:
            since = 0  # what is gone can't be told one by one any more: all that there is instead
        newest_first: list[str] = []
        for key in reversed(self._changed):
            if self._changed[key] <= since:
                break
            newest_first.append(key)
        changed = tuple(e for k in reversed(newest_first) if (e := self.entries.get(k)) is not None)
        gone = tuple(k for k in newest_first if k not in self.entries)
        return Report(life, since, self.version, changed, gone)

    def told(self, until: int) -> None:
        """The other has all changes up to this one: removals need not be remembered."""
        while self._removed:
            key, change = next(iter(self._removed.items()))
            if change > until:
                return
            self._forgotten = change
            del self._removed[key], self._changed[key]


class Copy:
    __slots__ = ("entries", "life", "version")

    def __init__(self, life: int) -> None:
        self.life = life
        self.version = 0
        self.entries: Mapping[str, Entry] = {}

    def take(self, report: Report) -> list[str]:
        """The keys that changed; none where the report does not follow on what is here."""
        changed = {key_of(e): e for e in report.changed}
        if report.since == 0 and (report.until > self.version or not self.version):
            before, self.entries = self.entries, changed
            self.version = report.until
            return list({**before, **changed})
        if report.since != self.version or report.until == self.version:
            return []
        assert isinstance(self.entries, dict)
        self.entries.update(changed)
        for key in report.gone:
            self.entries.pop(key, None)
        self.version = report.until
        return [*changed, *report.gone]
