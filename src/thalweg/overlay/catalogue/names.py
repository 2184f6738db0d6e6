"""Which name means which entry: a function of the entries alone.

Of entries of one name that stand, the earliest, by (born, owner), has it; all others are
`name@owner`. So nodes that know the same entries agree, and nothing is hidden. An owner that sees
its entry come second writes that down (`renamed`): from then on the entry stays `name@owner`
whatever happens to the first, since a name that people use must not turn into another thing by
somebody else's DROP. One that gave way to an entry which was dropped already, as it turns out
(`Loss`), takes that back: else two that have met late would both have lost the name to nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from thalweg.overlay.catalogue.entry import Entry


def holders(standing: Iterable[Entry]) -> dict[str, Entry]:
    """Who has each plain name."""
    found: dict[str, Entry] = {}
    for entry in standing:
        if not entry.renamed:
            known = found.get(entry.name)
            if known is None or entry.seniority < known.seniority:
                found[entry.name] = entry
    return found


def visible_names(standing: Sequence[Entry]) -> dict[str, Entry]:
    """Every entry that stands under its name, in the order of names."""
    plain = holders(standing)
    named = {e.name if plain.get(e.name) is e else e.full_name: e for e in standing}
    return dict(sorted(named.items()))
