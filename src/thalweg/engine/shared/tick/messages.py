"""What the driver and its tasks say to each other: a tick's specification, and a task's report."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.names import Table
from thalweg.engine.shared.state.segments import Section, Segment

PLANS = "plans"  # the folder of files that tell tasks what to do
LANDED = "landed"  # the folder of tuples that wait for a tick


class NewTuples(NamedTuple):
    """Tuples that have landed: those below the floor do not count, and to positions the shift is to
    be added. Where they are many, they also lie in the order of SteMs, so that a task reads what it
    owns. Where they are few, they are here themselves, and in no file."""

    section: Section
    floor: int
    shift: int
    divided: dict[Table, Section]
    content: bytes | None = None


class GroupSpec(msgspec.Struct, frozen=True):
    """What a group's members want in a tick."""

    windows: list[tuple[int, ...]]  # the different ones, as lengths leaf by leaf; -1: unbounded
    families: str | None  # the file with the families whose rows are pushed


class ShapeSpec(msgspec.Struct, frozen=True):
    """The shape of a join in a tick (`kernels.join.shapes`)."""

    kept: tuple[tuple[int, ...], ...]  # whose joins are kept, from the inside out
    usable: tuple[tuple[int, ...], ...]  # of these, those that are kept already; the others begin
    orders: tuple[tuple[int, ...], ...]  # for each input, the order in which to probe


class Sample(msgspec.Struct, frozen=True):
    """Some of an input's new rows are to probe in an order that is not the present one."""

    start: int
    order: tuple[int, ...]


class TickSpec(msgspec.Struct, frozen=True):
    """All that a task needs to know of a tick; made by the driver, the same for every task."""

    files: Folder
    tick: int
    tasks: int
    plan: str  # the file that holds the plan; a worker reads it once
    ranges: dict[str, tuple[int, int]]  # flow -> the instants [from, upto) that become final
    landed: dict[str, list[NewTuples]]  # stream -> its new tuples, in order of arrival
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
    starts: tuple[int, ...] = ()  # of tasks' ranges of hashes; nothing: of equal width
    buckets: tuple[int, ...] = ()  # where those begin whose rows are to be counted
    held: dict[str, bytes] = {}  # query -> what the version before it held at its start
    most_merged: int | None = None  # bytes; larger segments stay as they are
    shapes: dict[str, ShapeSpec] = {}  # "flow/join" -> the shape of those that are no MJoin
    samples: dict[str, Sample] = {}  # "flow/join" -> what is to be looked at beside


class HotKey(msgspec.Struct, frozen=True):
    """A value of a SteM's key that many of a tick's new tuples have."""

    stream: str
    key: str
    rows: int


class TaskReport(msgspec.Struct):
    """What a task did: new segments, segments that these replace, and what it saw."""

    added: list[Segment]
    removed: list[tuple[str, int]]
    results: list[Segment]  # of queries and groups, and what relations rejected
    pushed: list[Segment]  # of families; gone with the tick
    matches: dict[str, list[int]]  # "join/input/target" -> [rows that probed, rows that matched]
    oldest: dict[str, int] = msgspec.field(default_factory=dict)  # of new tuples, by stream
    busy_s: float = 0.0
    cpu_s: float = 0.0
    rows_by_bucket: dict[int, int] = msgspec.field(default_factory=dict)  # by where it begins
    hottest: list[HotKey] = msgspec.field(default_factory=list)
    seconds: dict[str, float] = msgspec.field(default_factory=dict)
    # "flow/join" -> rows that were added to each of what it keeps; -1: they were too many
    kept: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    # "flow/join" -> "start/bound/binds" -> rows that probed and matched, of all and of samples
    probes: dict[str, dict[str, list[int]]] = msgspec.field(default_factory=dict)
    sampled: dict[str, dict[str, list[int]]] = msgspec.field(default_factory=dict)
