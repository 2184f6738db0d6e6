"""State matching and recomputing: from what another plan kept to what this one needs.

Source: D-CAPE 4.1, 4.2. Two states match if they hold the same: a row for each of the same
inputs. Matching states are taken over as they are, others are discarded; what is then missing is
recomputed from below, from the bottom to the top. Local re-optimisation is the same, with the
node's own states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from thalweg.adapt.moves.query import Query
from thalweg.adapt.moves.state.join import RangeJoin
from thalweg.adapt.moves.state.shapes import Inputs, Shape
from thalweg.adapt.moves.state.tables import Segment

States = Mapping[Inputs, Mapping[int, Segment]]


@dataclass(frozen=True, slots=True)
class Matched:
    join: RangeJoin
    taken: tuple[Inputs, ...]  # states that match
    discarded: tuple[Inputs, ...]  # kept there, not needed here
    recomputed: tuple[Inputs, ...]  # needed here, not kept there
    work: int  # rows looked at and inserted to recompute


def match(query: Query, shape: Shape, states: States, at: int, number: int) -> Matched:
    """The join in this shape at instant `at`, on states that were frozen there.

    Windows must all be there: nothing recomputes them. `number` names the segments that are made.
    """
    join = RangeJoin(query, shape)
    missing = [query.streams[i] for i in range(len(query.streams)) if (i,) not in states]
    if missing:
        raise ValueError(f"states without the windows of {', '.join(missing)}: a gap is refused")
    taken = [inputs for inputs in join.tables if inputs in states]
    for inputs in taken:
        for segment_number, segment in sorted(states[inputs].items()):
            join.tables[inputs].adopt(segment_number, segment)
    recomputed = [inputs for inputs in join.tables if inputs not in states]
    for (
        inputs
    ) in recomputed:  # the tables are in the order of the shape: from the bottom to the top
        join.recompute(inputs, at - 1, number)  # what ends at `at` is still to be said
    return Matched(
        join,
        tuple(taken),
        tuple(sorted(set(states) - set(join.tables))),
        tuple(recomputed),
        join.work,
    )


def reshaped(join: RangeJoin, shape: Shape, at: int, number: int) -> Matched:
    """The same join in another shape from instant `at` on."""
    states = {inputs: dict(table.segments) for inputs, table in join.tables.items()}
    found = match(join.query, shape, states, at, number)
    found.join.probed += join.probed
    found.join.kept += join.kept
    found.join.made += join.made
    return found
