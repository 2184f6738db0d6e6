"""What the driver and its tasks say to each other: a tick's specification, and a task's report."""

from __future__ import annotations

import msgspec

from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.names import Table
from thalweg.engine.shared.state.segments import Section, Segment

PLANS = "plans"  # the folder of files that tell tasks what to do
LANDED = "landed"  # the folder of tuples that wait for a tick


class GroupSpec(msgspec.Struct, frozen=True):
    """What a group's members want in a tick."""

    windows: list[tuple[int, ...]]  # the different ones, as lengths leaf by leaf; -1: unbounded
    families: str | None  # the file with the families whose rows are pushed


class TickSpec(msgspec.Struct, frozen=True):
    """All that a task needs to know of a tick; made by the driver, the same for every task."""

    files: Folder
    tick: int
    tasks: int
    plan: str  # the file that holds the plan; a worker reads it once
    ranges: dict[str, tuple[int, int]]  # flow -> the instants [from, upto) that become final
    landed: dict[str, list[tuple[Section, int]]]  # stream -> its new tuples, in order; a floor
    ended: list[str]  # streams of which no tuple will come any more
    segments: list[Segment]
    orders: dict[str, list[list[int]]]  # join -> for each input, the order in which to probe
    floors: dict[str, int]  # stream -> instants below are not needed any more
    started: dict[str, int]  # query -> the instant from which its result counts
    backfill: dict[str, tuple[Table, list[Table]]]  # stream -> a SteM, and new ones to fill from it
    groups: dict[str, GroupSpec]
    reduced: dict[str, int]  # relation -> its changes below become what is left of them
    rejects_from: dict[str, int]  # relation -> what it rejected before has been reported
    shares: tuple[tuple[str, ...], ...] = ()  # of runs by task, where one task has all rows
    held: dict[str, bytes] = {}  # query -> what the version before it held at its start


class TaskReport(msgspec.Struct):
    """What a task did: new segments, segments that these replace, and what it saw."""

    added: list[Segment]
    removed: list[tuple[str, int]]
    results: list[Segment]  # of queries and groups, and what relations rejected
    pushed: list[Segment]  # of families; gone with the tick
    matches: dict[str, list[int]]  # "join/input/target" -> [rows that probed, rows that matched]
    oldest: dict[str, int] = msgspec.field(default_factory=dict)  # of new tuples, by stream
    rows_in: int = 0
    busy_s: float = 0.0
    seconds: dict[str, float] = msgspec.field(default_factory=dict)
