"""What fragments and queries are to read of whom, once that has moved on purpose.

Who reads a fragment writes it down when the fragment goes elsewhere, in the transaction in which it
goes over: so what runs can be compared with what was planned, also after moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from thalweg.runtime.data.fragments import Fragment, digest, digest_of


@dataclass(frozen=True, slots=True)
class Moved:
    """A fragment that a node computed under a publication is computed by another one; by replay,
    as another fragment, if what it reads is computed elsewhere, too."""

    was: str
    publication: str
    to: str
    fragment: Fragment | None = None  # None: the same

    def applied(self, given: Fragment) -> Fragment:
        wanted = digest_of(self.publication)
        inputs = tuple(
            msgspec.structs.replace(i, at=self.to, fragment=self.fragment or i.fragment)
            if i.at == self.was and digest(i.fragment) == wanted
            else i
            for i in given.inputs
        )
        return msgspec.structs.replace(given, inputs=inputs)


def given_note(publication: str) -> str:
    """Under which it is kept what a fragment is to read of others since that has moved."""
    return f"given/{publication}"
