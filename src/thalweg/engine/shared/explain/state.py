"""What an engine keeps for its operators: rows and bytes by table, and fan-outs that were seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from thalweg.engine.shared.kernels.join.shapes import Inputs, kept_in
from thalweg.engine.shared.state.kept_joins import KeptJoin
from thalweg.engine.shared.state.names import Table, state_owner, state_part
from thalweg.engine.shared.state.segments import Segment

_PARTS = {
    "state": "rows",
    "ends": "ends to come",
    "live": "live rows",
    "waiting": "rows to come",
    "reach": "ends of windows",
}


@dataclass(frozen=True, slots=True)
class Size:
    rows: int = 0
    size: int = 0  # bytes
    segments: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.rows + other.rows, self.size + other.size, self.segments + other.segments)

    def __str__(self) -> str:
        noun = "segment" if self.segments == 1 else "segments"
        return f"{self.rows:,} rows, {bytes_text(self.size)}, {self.segments} {noun}"

    def data(self) -> dict[str, int]:
        return {"rows": self.rows, "bytes": self.size, "segments": self.segments}


@dataclass(frozen=True, slots=True)
class State:
    """Nothing, for a query that does not run; `sharers` are the queries of each operator."""

    tables: Mapping[Table, Size] = field(default_factory=dict)
    fanouts: Mapping[str, float] = field(default_factory=dict)
    sharers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_running: bool = False
    shapes: Mapping[str, KeptJoin] = field(default_factory=dict)  # by "flow/join"

    def parts(self, flow: str, operator: str) -> dict[str, Size]:
        """The parts of an operator's state, under words for them."""
        found: dict[str, Size] = {}
        for table, size in self.tables.items():
            if state_owner(table) == (flow, operator) and kept_in(table) is None:
                word = part_text(state_part(table))
                found[word] = found.get(word, Size()) + size
        return dict(sorted(found.items()))


def sizes(segments: Iterable[Segment]) -> dict[Table, Size]:
    found: dict[Table, Size] = {}
    for s in segments:
        found[s.table] = found.get(s.table, Size()) + Size(s.rows, s.size, 1)
    return found


def kept_sizes(tables: Mapping[Table, Size], place: str) -> dict[Inputs, Size]:
    """What a join keeps beside windows, by whose join it is."""
    found: dict[Inputs, Size] = {}
    for table, size in tables.items():
        of = kept_in(table)
        if of is not None and of[0] == place:
            found[of[1]] = found.get(of[1], Size()) + size
    return found


def part_text(part: str) -> str:
    if part.startswith("stem-"):
        return "SteM"
    if part.startswith("values-"):
        return "values"
    return _PARTS.get(part, part)


def bytes_text(size: int) -> str:
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
