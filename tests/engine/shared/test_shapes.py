"""Whatever joins keep beside windows, and however that changes: results are the reference's."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.runner import compare
from tests.drawn import examples
from tests.engine.shared.adapter import WAYS, Collect, divided, push

from thalweg.cql.compile import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.kernels.join import kept
from thalweg.engine.shared.kernels.join.shapes import MJOIN, Shape, kept_in, shapes_of
from thalweg.engine.shared.state.inputs import Inputs as Inputs_
from thalweg.engine.shared.tick.commit import Commit
from thalweg.engine.shared.tick.shaping.policy import Chosen

STREAMS = "".join(
    f"CREATE STREAM {s} (k INTEGER, v INTEGER) TIMESTAMP BY at;" for s in ("A", "B", "C", "D")
)
Inputs = dict[str, list[Arrival]]
Choose = Callable[[ph.Join, int], Shape]
TRIPLE = (
    "SELECT A.v, B.k, C.v FROM A [Range 5], B [Range 6], C [Range 9] WHERE A.k = B.k AND B.v = C.v"
)


class Killed(Exception):
    """As if the process had ended here."""


def _die(*_: object, **__: object) -> None:
    raise Killed


POINTS: dict[str, tuple[object, str]] = {
    "before the commit": (Commit, "__call__"),
    "with intermediates listed": (Inputs_, "write_stems"),
}


class Shaped:
    """An engine whose joins have the shapes that somebody chooses."""

    def __init__(self, folder: Path, text: str, inputs: Inputs, choose: Choose, way: str) -> None:
        self.folder, self.choose, self.way = folder, choose, way
        self.script = compile_script(STREAMS + text)
        self.inputs, self.outlet = inputs, Collect()
        self.streams = {s.name: s for s in self.script.catalog.streams()}
        self.waiting = {name: iter(arrivals) for name, arrivals in inputs.items()}
        self.open()
        for stream in self.streams.values():
            self.engine.landing.declare(stream, [0])

    def open(self) -> None:
        how = divided(self.way)
        policy = Chosen(self.choose)
        self.engine = SharedEngine(
            self.folder, outlet=self.outlet, durable=False, shapes=policy, **how
        )
        for stream in self.streams.values():
            self.engine.add_stream(stream)
        self.engine.add_queries(self.script.queries)

    def restart(self) -> None:
        self.engine.close()
        self.open()

    def crash(self, tuples: int, point: str) -> None:
        """A tick that comes to nothing, at its end or in the middle of its transaction."""
        said = {q: list(of) for q, of in self.outlet.results.items()}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(*POINTS[point], _die)
            with suppress(Killed):  # there may have been nothing to do
                self.flow(tuples)
                said = self.outlet.results
        self.outlet.results = said  # as sinks forget what they were told beyond the last commit
        self.restart()

    def flow(self, tuples: int) -> None:
        for name, arrivals in self.waiting.items():
            push(self.engine, self.streams[name], list(islice(arrivals, tuples)))
        self.engine.run_to_end()

    def end(self) -> None:
        self.flow(1_000)
        for name in self.streams:
            self.engine.finish(name)
        self.engine.run_to_end()
        for query in self.script.queries:
            expected = reference.evaluate(query.plan, self.inputs)
            report = compare(query, expected, self.outlet.results.get(query.name, []))
            assert not report, report
        self.engine.close()

    @property
    def kept_rows(self) -> int:
        return sum(s.rows for s in self.engine.manifest if kept_in(s.table) is not None)


def arriving(*at: int) -> Inputs:
    return {s: [Arrival(0, t, t, (1 + t % 2, t % 3), "+") for t in at] for s in "ABCD"}


_sources = {
    "A": ["A [Range 5]", "A [Range 5]", "A [Rows 2]", "A [Range 7 Slide 2]"],
    "B": ["B [Range 6]", "(SELECT k, MAX(v) AS v FROM B [Range 4] GROUP BY k) AS B"],
    "C": ["C [Range 9]", "C [Range Unbounded]", "(SELECT DISTINCT k, v FROM C [Range 5]) AS C"],
    "D": ["D [Range 4]", "D [Now]"],
}


@st.composite
def workloads(draw: st.DrawFn) -> tuple[str, Inputs]:
    text = ""
    for i in range(draw(st.integers(1, 2))):
        names = draw(st.permutations(["A", "B", "C"] if draw(st.booleans()) else list("ABCD")))
        where = [draw(st.sampled_from(["A.k = B.k", "A.v = B.k"]))]
        where.append(draw(st.sampled_from(["B.k = C.k", "A.v = C.v", "B.v = C.v"])))
        if "D" in names:
            where.append(draw(st.sampled_from(["D.k = A.k", "C.v = D.v"])))
        where += draw(st.lists(st.sampled_from(["A.v <= B.v", "A.v + B.v < C.k + 3"]), max_size=1))
        shown = draw(
            st.lists(st.sampled_from([f"{n}.{c}" for n in names for c in "kv"]), min_size=1)
        )
        columns = ", ".join(f"{c} AS c{n}" for n, c in enumerate(shown))
        top = draw(st.sampled_from(["SELECT", "SELECT", "SELECT DISTINCT", "RSTREAM SELECT"]))
        sources = ", ".join(draw(st.sampled_from(_sources[n])) for n in names)
        text += f"CREATE QUERY q{i} AS {top} {columns} FROM {sources} WHERE {' AND '.join(where)};"
    chance = random.Random(draw(st.integers(0, 1 << 32)))  # rows that meet, more often than not
    inputs = {}
    for stream in "ABCD":
        at, arrivals = 0, []
        for position in range(chance.randint(6, 12)):
            at += chance.randint(0, 2)
            row = (chance.choice([1, 1, 1, 2, None]), chance.choice([1, 1, 0, 2]))
            arrivals.append(Arrival(0, at, position, row, "+"))
        inputs[stream] = arrivals
    return text, inputs


@settings(
    max_examples=examples(12),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    workloads(),
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from(["", "", "restart", *POINTS])),
        min_size=4,
        max_size=8,
    ),
    st.sampled_from(WAYS),
)
def test_shapes_that_change_between_ticks_restarts_and_crashes_do_not_show(
    workload: tuple[str, Inputs],
    drawn: list[int],
    ticks: list[tuple[int, str]],
    way: str,
) -> None:
    def choose(op: ph.Join, tick: int) -> Shape:
        shapes = shapes_of(op)
        return shapes[drawn[tick // 2 % len(drawn)] % len(shapes)]

    with tempfile.TemporaryDirectory() as folder:
        shaped = Shaped(Path(folder), *workload, choose, way)
        for tuples, what in ticks:
            if what in POINTS:
                shaped.crash(tuples, what)
                continue
            shaped.flow(tuples)
            if what == "restart":
                shaped.restart()
        shaped.end()


def keeps_a_and_b(op: ph.Join, tick: int) -> Shape:
    return ((0, 1),)


def test_what_is_kept_goes_with_its_intervals(tmp_path: Path) -> None:
    inputs = arriving(*range(12), 100, 101)
    text = f"CREATE QUERY q AS {TRIPLE};"
    shaped = Shaped(tmp_path, text, inputs, keeps_a_and_b, "one task")
    shaped.flow(12)
    assert shaped.kept_rows > 0
    shaped.flow(1)
    assert shaped.kept_rows == 0
    shaped.end()


def test_an_intermediate_that_begins_late_has_what_windows_hold(tmp_path: Path) -> None:
    inputs = arriving(*range(12))
    text = f"CREATE QUERY q AS {TRIPLE};"
    since = 3
    late = Shaped(
        tmp_path / "late",
        text,
        inputs,
        lambda op, tick: ((0, 1),) if tick >= since else MJOIN,
        "one task",
    )
    early = Shaped(tmp_path / "early", text, inputs, keeps_a_and_b, "one task")
    for _ in range(since):
        assert late.kept_rows == 0
        late.flow(2)
        early.flow(2)
    assert late.kept_rows == early.kept_rows > 0
    late.end()
    early.end()


def test_what_is_kept_is_probed_instead_of_its_inputs(tmp_path: Path) -> None:
    shaped = Shaped(
        tmp_path, f"CREATE QUERY q AS {TRIPLE};", arriving(*range(8)), keeps_a_and_b, "one task"
    )
    shaped.flow(2)
    shaped.flow(2)
    (estimates,) = shaped.engine.ticks.shaping._estimates.values()
    assert {n for n in estimates.fanouts if n.startswith("2/2/")} >= {"2/2/0.1"}
    shaped.end()


def test_too_many_rows_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_ROWS", 2)
    shaped = Shaped(
        tmp_path, f"CREATE QUERY q AS {TRIPLE};", arriving(*range(8)), keeps_a_and_b, "rows"
    )
    shaped.flow(4)
    assert shaped.kept_rows == 0
    shaped.end()


def test_what_another_version_did_not_maintain_does_not_count(tmp_path: Path) -> None:
    """It runs ticks, and leaves alone what it does not know."""
    shaped = Shaped(
        tmp_path, f"CREATE QUERY q AS {TRIPLE};", arriving(*range(12)), keeps_a_and_b, "one task"
    )
    shaped.flow(4)
    before = shaped.engine.ticks.shaping.records
    listed = [s for s in shaped.engine.manifest if kept_in(s.table) is not None]
    assert listed
    shaped.engine.ticks.shaping.policy = Chosen(lambda op, tick: MJOIN)
    shaped.flow(2)
    shaped.flow(2)
    assert shaped.kept_rows == 0
    with shaped.engine.store.transaction():  # as if nothing had been dropped
        shaped.engine.store.kept_joins.write({}, before)
    shaped.restart()
    shaped.end()
