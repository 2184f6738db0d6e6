"""MJoin at the owner of a value's bucket: an arriving item meets all others of its value.

Source: DHTJoin 4.3.3.1, after Viglas et al. (2003): one probing sequence for each input, no
intermediate state. The sequence is chosen afresh for each arrival: the input with the fewest items
of this value first, so that a missing partner is found out at once.

Invariant: the outputs are all combinations of the arrival with stored items of the other inputs
whose intervals intersect, each once; windows are checked here, so a late purge never shows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from thalweg.overlay.p2p.dataflow import Operator
from thalweg.overlay.p2p.query import compare
from thalweg.overlay.p2p.tuples import Parts, Value

Lookup = Callable[[str, Value], Collection[Parts]]  # SteM and value -> what is stored there


def probe(operator: Operator, at: int, parts: Parts, key: Value, stored: Lookup) -> list[Parts]:
    """The join's outputs that the arrival of `parts` at port `at` makes."""
    ports = operator.ports
    if not ports[at].takes(parts):
        return []
    others = [(i, stored(p.stem, key)) for i, p in enumerate(ports) if i != at]
    if not all(found for _, found in others):
        return []
    others.sort(key=lambda entry: len(entry[1]))
    start, end = ports[at].interval(parts)
    so_far: list[tuple[int, int, dict[int, Parts]]] = [(start, end, {at: parts})]
    for i, candidates in others:
        port = ports[i]
        fitting = [(c, *port.interval(c)) for c in candidates if port.takes(c)]
        so_far = [
            (max(start, s), min(end, e), {**chosen, i: c})
            for start, end, chosen in so_far
            for c, s, e in fitting
            if max(start, s) < min(end, e)
        ]
        if not so_far:
            return []
    count = len(ports)
    found = [tuple([part for i in range(count) for part in chosen[i]]) for _, _, chosen in so_far]
    return [c for c in found if _passes(operator, c)] if operator.checks else found


def _passes(operator: Operator, parts: Parts) -> bool:
    return all(
        compare(parts[c.left].values[c.left_column], c.op, parts[c.right].values[c.right_column])
        for c in operator.checks
    )
