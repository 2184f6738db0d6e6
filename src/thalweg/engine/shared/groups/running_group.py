"""Groups in the engine: a representative as an operator, and when it can answer a query.

When members need a looser representative, a new group is started from the SteMs' contents, and they
move there when both have reached the same frontier (`regrouping`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.blocks import block, closed, nameless, netted
from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.groups.families import Family
from thalweg.plan.expr import Col, remap
from thalweg.plan.types import BIGINT
from thalweg.plan.windows import BEGINNING, TimeWindow
from thalweg.sharing.core import Core, slides_of
from thalweg.sharing.plans import conditions_of
from thalweg.sharing.representative import Representative


@dataclass(frozen=True)
class RunningGroup:
    """A representative, and how the engine runs it."""

    representative: Representative
    run: Run
    family: Family | None = None  # of members that are run together up to their aggregates

    @property
    def name(self) -> str:
        return self.run.name

    @property
    def runs_aggregates(self) -> bool:
        """Whether what stands above the members' cores is run here, for all of them."""
        return self.family is not None

    @property
    def operator(self) -> ph.Group:
        return next(op for op in ph.walk(self.run.output) if isinstance(op, ph.Group))

    def covers(self, member: Run, frontier: int) -> bool:
        """Whether the member can be answered from here, from `frontier` on."""
        core = core_of(member)
        return (
            not self.runs_aggregates
            and self.representative.covers(core)
            and (self.operator.keeps_ends or not has_ends(core))
            and knows_enough(dict(self.run.horizons), member, frontier)
        )

    def covers_all_of(self, other: RunningGroup) -> bool:
        """Whether whatever the other one can answer can be answered from here."""
        return (
            not self.runs_aggregates
            and self.representative.covers(other.representative.to_core())
            and (self.operator.keeps_ends or not other.operator.keeps_ends)
            and _sees_no_less(self.run, other.run)
        )


def _sees_no_less(one: Run, other: Run) -> bool:
    """Whether every tuple that the other run has seen was seen by this one, too."""
    own = dict(one.horizons)
    theirs = dict(other.horizons)
    return all(h <= theirs.get(s, BEGINNING) for s, h in own.items())


def knows_enough(horizons: Mapping[str, int], member: Run, frontier: int) -> bool:
    """Whether who has seen the streams from these horizons on has seen every tuple that can still
    have a part in the member's result."""
    core, own = core_of(member), dict(member.horizons)
    is_single = len(core.streams) == 1  # then tuples that are in can only end

    def is_known(stream: str, window: TimeWindow) -> bool:
        begins = horizons.get(stream, BEGINNING)
        if begins <= own.get(stream, BEGINNING):
            return True
        # What becomes of the last tuple that was not seen must have been said.
        enters, leaves = window.interval(begins - 1)
        return (is_single and enters < frontier) if window.length is None else leaves < frontier

    return all(is_known(s.name, w) for s, w in zip(core.streams, core.windows, strict=True))


def core_of(member: Run) -> Core:
    assert member.normal is not None
    return member.normal.core


def has_ends(core: Core) -> bool:
    return any(w.length is not None for w in core.windows)


def will_be_known(member: Run) -> bool:
    """Whether `knows_enough` becomes true with time, wherever another run has begun."""
    return is_finite(member) or len(core_of(member).streams) == 1


def is_finite(member: Run) -> bool:
    return all(w.length is not None for w in core_of(member).windows)


# --- the representative as an operator -----------------------------------------------------------


def compile_group(rep: Representative, members: Iterable[Core]) -> ph.Group:
    """Attributes, then every leaf's timestamp."""
    cores = list(members)
    offsets = rep.to_core().offsets
    leaf_of = [
        i for i, s in enumerate(rep.streams) for _ in s.fields
    ]  # in a stamped leaf, what stands behind moves by one for each stamp before it
    sources = tuple(
        ph.Source(
            s.name, (*(f.type for f in s.fields), BIGINT), w, stamped=True, placed=s.is_placed
        )
        for s, w in zip(rep.streams, rep.windows, strict=True)
    )

    def place(column: int) -> int:
        return column + leaf_of[column]

    core = rep.to_core()
    conditions = tuple(remap(nameless(c), place) for c in conditions_of(core))
    attributes = tuple(remap(nameless(e), place) for e in core.outputs)
    stamps = tuple(Col(offsets[i + 1] + i, BIGINT) for i in range(len(rep.streams)))
    rows = closed(block(sources, conditions, (*attributes, *stamps)))
    slides = slides_of(rep.windows)
    return ph.Group(_divided(rows, rep, cores), slides, any(has_ends(c) for c in cores))


def _divided(rows: ph.Op, rep: Representative, cores: Sequence[Core]) -> ph.Exchange:
    """Rows that can be equal in a member's projection should meet in one task.

    By the join's key where it is an attribute, else by a column that all members project; families
    that do not project it are looked after by the driver (`is_colocated`).
    """
    stays = netted(rows)
    if stays.stays:
        return stays
    common = [
        i
        for i, column in enumerate(rep.attributes)
        if all(any(isinstance(e, Col) and e.index == column for e in c.outputs) for c in cores)
    ]
    return ph.Exchange(rows, tuple(Col(i, rows.types[i]) for i in common[:1]))
