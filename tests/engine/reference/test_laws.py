"""Laws that the reference obeys on generated workloads, whatever the query."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.conformance.generators import UNSTAMPED_TABLES, Workload, workloads
from tests.conformance.generators.tables import R, S, T, arrivals

from thalweg.cql import compile_script
from thalweg.engine.arrivals import Arrival, watermark
from thalweg.engine.changelog import Change, faults, relation_at
from thalweg.engine.reference import evaluate, run
from thalweg.engine.reference.evaluator import Options
from thalweg.engine.reference.meaning import Meaning
from thalweg.plan.nodes import StreamKind, ToStream, base_streams
from thalweg.plan.uniqueness import tells_rows_apart

slow_to_draw = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
ALL_SLIDES = 60  # a multiple of every slide and hop that is drawn
INSTANTS = range(-8, 90)


def plan_of(workload: Workload):
    (query,) = workload.script().queries
    return query.plan


def relation_of(workload: Workload):
    """The query's plan without ISTREAM and the like on top."""
    plan = plan_of(workload)
    return plan.input if isinstance(plan, ToStream) else plan


# --- the snapshot law ---------------------------------------------------------------------------
@slow_to_draw
@given(workloads(in_order=True, tables=UNSTAMPED_TABLES[:3]))
def test_changelog_sums_up_to_the_relation_at_every_instant(workload):
    """Not only at the instants that were looked at."""
    plan = relation_of(workload)
    changes = evaluate(plan, workload.inputs)
    assert faults(changes) == []
    tuples = {name.lower(): tuple(found) for name, found in workload.inputs.items()}
    relation = Meaning(tuples, {}).relation(plan)
    for now in INSTANTS:
        assert relation_at(changes, now) == Counter(relation.at(now))


@settings(suppress_health_check=list(HealthCheck))  # of what is drawn, about a third is said to
@given(workloads(in_order=True, tables=UNSTAMPED_TABLES[:3]), st.data())
def test_columns_that_are_said_to_tell_rows_apart_do(workload, data):
    plan = relation_of(workload)
    columns = data.draw(st.frozensets(st.sampled_from(range(len(plan.schema))), min_size=1))
    assume(tells_rows_apart(plan, columns))
    changes = evaluate(plan, workload.inputs)
    for now in sorted({c.ts for c in changes}):
        keys = Counter(
            tuple(row[c] for c in sorted(columns)) for row in relation_at(changes, now).elements()
        )
        assert set(keys.values()) <= {1}


STREAMS = st.tuples(arrivals(S, in_order=True), arrivals(T, in_order=True))
DEFINITIONS = f"{S.definition(0)}\n{T.definition(0)}\n"


def snapshots(query, inputs):
    (found,) = compile_script(DEFINITIONS + query).queries
    changes = evaluate(found.plan, dict(zip("ST", inputs, strict=True)))
    return {now: relation_at(changes, now) for now in INSTANTS}


def in_range(arrived, now, length):
    return [a.row for a in arrived if now - length <= a.timestamp <= now]


@given(STREAMS)
def test_filter_and_projection_by_comprehension(inputs):
    for now, bag in snapshots(
        "SELECT t, v + 1 FROM S [Range 3] WHERE k = 1 AND v > 0", inputs
    ).items():
        rows = in_range(inputs[0], now, 3)
        assert bag == Counter((t, v + 1) for k, v, t in rows if k == 1 and v is not None and v > 0)


@given(STREAMS)
def test_join_by_comprehension(inputs):
    query = "SELECT S.t, T.x FROM S [Range 2], T [Range 4] WHERE S.k = T.k"
    for now, bag in snapshots(query, inputs).items():
        left, right = in_range(inputs[0], now, 2), in_range(inputs[1], now, 4)
        pairs = ((s, t) for s in left for t in right if s[0] is not None and s[0] == t[0])
        assert bag == Counter((s[2], t[1]) for s, t in pairs)


@given(STREAMS)
def test_grouped_aggregate_by_comprehension(inputs):
    query = "SELECT k, COUNT(*), SUM(v) FROM S [Range 3] GROUP BY k"
    for now, bag in snapshots(query, inputs).items():
        rows = in_range(inputs[0], now, 3)
        expected = Counter()
        for key in {k for k, _, _ in rows}:
            values = [v for k, v, _ in rows if k == key]
            known = [v for v in values if v is not None]
            expected[key, len(values), sum(known) if known else None] += 1
        assert bag == expected


@given(STREAMS)
def test_sliding_window_by_comprehension(inputs):
    for now, bag in snapshots("SELECT k FROM S [Range 4 Slide 3]", inputs).items():
        assert bag == Counter((k,) for k, _, _ in in_range(inputs[0], now - now % 3, 4))


@given(STREAMS)
def test_last_row_of_each_key_by_comprehension(inputs):
    for now, bag in snapshots("SELECT k, v FROM S [Partition By k Rows 1]", inputs).items():
        last = {a.row[0]: a.row[1] for a in inputs[0] if a.timestamp <= now}
        assert bag == Counter(last.items())


@given(STREAMS)
def test_except_all_by_comprehension(inputs):
    query = "SELECT k FROM S [Range 3] EXCEPT ALL SELECT k FROM T [Range 3]"
    for now, bag in snapshots(query, inputs).items():
        left, right = (Counter((r[0],) for r in in_range(i, now, 3)) for i in inputs)
        assert bag == left - right


# --- what must not matter -----------------------------------------------------------------------
@slow_to_draw
@given(workloads(in_order=True), st.data())
def test_partitioning_an_input_changes_nothing_when_nothing_is_late(workload, data):
    plan = plan_of(workload)
    count = data.draw(st.integers(1, 3))
    parted = {
        name: [replace(a, partition=data.draw(st.integers(0, count))) for a in found]
        for name, found in workload.inputs.items()
    }
    outcome = run(plan, parted)
    assert not any(outcome.late.values())
    assert outcome.changes == evaluate(plan, workload.inputs)


@slow_to_draw
@given(workloads(), st.randoms(use_true_random=False))
def test_interleaving_of_partitions_changes_nothing(workload, random):
    plan = plan_of(workload)
    one, other = run(plan, workload.inputs), run(plan, _interleaved(workload, random))
    assert one.changes == other.changes
    assert one.rejects == other.rejects
    for name, found in one.late.items():
        assert set(found) == set(other.late[name])


def _interleaved(workload, random):
    """Each partition's sequence as it was, the partitions mixed anew."""
    mixed = {}
    for name, found in workload.inputs.items():
        queues = {p: [a for a in found if a.partition == p] for p in {a.partition for a in found}}
        order = [a.partition for a in found]
        random.shuffle(order)
        mixed[name] = [queues[p].pop(0) for p in order]
    return mixed


@slow_to_draw
@given(workloads(tables=UNSTAMPED_TABLES), st.integers(-3, 3))
def test_shifting_time_by_a_multiple_of_all_slides_shifts_the_output(workload, times):
    assume("window_" not in workload.text)  # bounds are values that shift as well
    by = times * ALL_SLIDES
    plan = plan_of(workload)
    shifted = {
        name: [replace(a, timestamp=a.timestamp + by) for a in found]
        for name, found in workload.inputs.items()
    }
    expected = [Change(c.ts + by, c.op, c.row) for c in evaluate(plan, workload.inputs)]
    assert evaluate(plan, shifted) == expected


# --- streams of a relation ----------------------------------------------------------------------
@slow_to_draw
@given(workloads(), st.integers(-2, 15))
def test_istream_and_dstream_are_the_halves_of_the_changelog(workload, start):
    relation = relation_of(workload)
    options = Options(start=start) if start >= 0 else Options()
    changes = evaluate(relation, workload.inputs, **options)
    for kind, op in ((StreamKind.ISTREAM, "+"), (StreamKind.DSTREAM, "-")):
        half = evaluate(ToStream(kind, relation), workload.inputs, **options)
        assert half == [c._replace(op="+") for c in changes if c.op == op]


@slow_to_draw
@given(workloads())
def test_rstream_is_the_relation_at_its_instants(workload):
    relation = relation_of(workload)
    outcome = run(relation, workload.inputs)
    found = evaluate(ToStream(StreamKind.RSTREAM, relation), workload.inputs)
    for now in INSTANTS:
        told = Counter(c.row for c in found if c.ts == now)
        assert not told or told == relation_at(outcome.changes, now)
    for stream in base_streams(relation):
        dropped = {*outcome.late[stream.name], *outcome.rejects[stream.name]}
        for arrival in workload.inputs[stream.name]:
            if not any(_same(arrival, d) for d in dropped):
                now = arrival.timestamp
                told = Counter(c.row for c in found if c.ts == now)
                assert told == relation_at(outcome.changes, now)


def _same(one: Arrival, other: Arrival) -> bool:
    return one.position == other.position


# --- progress -----------------------------------------------------------------------------------
@slow_to_draw
@given(workloads(), st.data())
def test_final_instants_are_never_taken_back(workload, data):
    """What a prefix of the arrivals makes final is what all of them make of those instants."""
    plan = plan_of(workload)
    streams = base_streams(plan)
    seen = {
        s.name: workload.inputs[s.name][: data.draw(st.integers(0, 12), label=s.name)]
        for s in streams
    }
    watermarks = {s.name: watermark(s, seen[s.name], (0, 1)) for s in streams}
    assume(any(seen.values()))
    frontier = min(watermarks.values())
    everything = evaluate(plan, workload.inputs)
    early = evaluate(plan, seen, watermarks=watermarks)
    assert early == [c for c in everything if c.ts < frontier]


@slow_to_draw
@given(workloads(), st.integers(-2, 15))
def test_from_its_start_on_a_query_has_the_same_relation(workload, start):
    relation = relation_of(workload)
    whole = evaluate(relation, workload.inputs)
    begun = evaluate(relation, workload.inputs, start=start)
    assert all(c.ts >= start for c in begun)
    for now in range(start, 60):
        assert relation_at(begun, now) == relation_at(whole, now)


@slow_to_draw
@given(workloads(), st.integers(-2, 15))
def test_a_horizon_is_the_same_as_not_having_the_earlier_tuples(workload, horizon):
    plan = plan_of(workload)
    streams = {s.name for s in base_streams(plan) if not s.is_relation}
    horizons = dict.fromkeys(streams, horizon)
    nothing_late = {name: _without_late(plan, workload, name) for name in workload.inputs}
    kept = {
        name: [a for a in found if name not in streams or a.timestamp >= horizon]
        for name, found in nothing_late.items()
    }
    assert evaluate(plan, nothing_late, horizons=horizons) == evaluate(plan, kept)


@slow_to_draw
@given(arrivals(R), st.integers(-2, 15))
def test_a_relation_begins_at_its_horizon_with_its_content(changes, horizon):
    """A base relation is kept whole: unlike a stream it loses nothing by a horizon."""
    definition = f"{R.definition(0)}\nCREATE QUERY q AS SELECT * FROM R;"
    (query,) = compile_script(definition).queries
    whole = evaluate(query.plan, {"R": changes})
    begun = evaluate(query.plan, {"R": changes}, horizons={"R": horizon})
    assert all(c.ts >= horizon for c in begun)
    for now in range(horizon, 60):
        assert relation_at(begun, now) == relation_at(whole, now)


def _without_late(plan, workload, name):
    late = run(plan, workload.inputs).late.get(name, ())
    return [a for a in workload.inputs[name] if not any(_same(a, x) for x in late)]


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_output_does_not_depend_on_the_hash_seed(hash_seed):
    """Sets are iterated here and there; nothing of their order may show."""
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from tests.conformance.case_files import all_cases\n"
        "from tests.conformance.runner import check, reference_engine\n"
        "for case in all_cases(): check(reference_engine, case)\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=300)
