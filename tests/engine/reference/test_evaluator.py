"""Running a plan over arrivals: lateness, rejects, start, horizons, finality, RSTREAM's instants.

What each operator and window means is in tests/conformance/cases.
"""

import pytest

from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import Change
from thalweg.engine.reference import evaluate, evaluate_stream_of, run
from thalweg.plan.aggregates import AggCall
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.expr import Col, Lit
from thalweg.plan.functions import call
from thalweg.plan.nodes import Aggregate, Filter, Join, Scan, StreamKind, ToStream, Window
from thalweg.plan.types import BIGINT
from thalweg.plan.windows import NOW, UNBOUNDED, TimeWindow

S = StreamDef("S", (Field("a", BIGINT),), "ts", BIGINT, lateness=2)
T = StreamDef("T", (Field("b", BIGINT),), "ts", BIGINT)
R = StreamDef("R", (Field("a", BIGINT),), "ts", BIGINT, is_relation=True)


def tuples(*drawn):
    return [Arrival(0, ts, i, (value,)) for i, (ts, value) in enumerate(drawn)]


def changes(*drawn):
    return [Change(ts, op, row) for ts, op, *row in drawn for row in [tuple(row)]]


def window(length, slide=1, stream=S):
    return Window(Scan(stream), TimeWindow(length, slide))


def count(source):
    return Aggregate(source, (), (AggCall("count"),), ("n",))


def test_late_tuples_do_not_count_and_are_told():
    outcome = run(window(1), {"s": tuples((5, 1), (9, 2), (6, 3), (7, 4))})
    assert outcome.changes == changes(
        (5, "+", 1), (7, "-", 1), (7, "+", 4), (9, "-", 4), (9, "+", 2), (11, "-", 2)
    )
    assert [a.row for a in outcome.late["S"]] == [(3,)]


def test_an_input_that_is_not_given_is_an_error():
    with pytest.raises(ValueError, match="no input is given for S"):
        evaluate(window(1), {"T": []})


def test_a_value_of_the_wrong_type_is_an_error():
    with pytest.raises(TypeError, match="BIGINT"):
        evaluate(window(1), {"S": [Arrival(0, 1, 0, ("1",))]})
    with pytest.raises(ValueError, match="S has 1 columns"):
        evaluate(window(1), {"S": [Arrival(0, 1, 0, (1, 2))]})


def test_a_minus_without_its_row_is_rejected_and_changes_nothing():
    arrivals = [
        Arrival(0, 1, 0, (7,), "-"),
        Arrival(0, 1, 1, (7,), "+"),
        Arrival(0, 3, 2, (8,), "-"),
        Arrival(0, 4, 3, (7,), "-"),
        Arrival(0, 4, 4, (7,), "-"),
    ]
    outcome = run(Scan(R), {"R": arrivals})
    assert outcome.changes == changes((1, "+", 7), (4, "-", 7))
    assert [a.position for a in outcome.rejects["R"]] == [0, 2, 4]


def test_a_relation_begins_at_its_horizon_with_its_content():
    changes = [
        Arrival(0, 1, 0, (1,), "+"),
        Arrival(0, 2, 1, (2,), "+"),
        Arrival(0, 3, 2, (1,), "-"),
        Arrival(0, 4, 3, (7,), "-"),
        Arrival(0, 6, 4, (3,), "+"),
    ]
    found = run(Scan(R), {"R": changes}, horizons={"R": 4})
    assert [(c.ts, c.op, c.row) for c in found.changes] == [(4, "+", (2,)), (6, "+", (3,))]
    assert [a.position for a in found.rejects["R"]] == [3]


def test_a_rejected_minus_is_no_instant_for_rstream():
    arrivals = [Arrival(0, 1, 0, (7,)), Arrival(0, 3, 1, (8,), "-")]
    assert evaluate(ToStream(StreamKind.RSTREAM, Scan(R)), {"R": arrivals}) == changes((1, "+", 7))


INPUT = {"S": tuples((2, 1), (4, 2), (8, 3))}


def test_before_its_start_a_query_is_empty():
    # [Range 4]: 1 over [2,7), 2 over [4,9), 3 over [8,13)
    assert evaluate(window(4), INPUT, start=5) == changes(
        (5, "+", 1), (5, "+", 2), (7, "-", 1), (8, "+", 3), (9, "-", 2), (13, "-", 3)
    )


def test_streams_of_a_late_start():
    of = {kind: ToStream(kind, window(4)) for kind in StreamKind}
    assert evaluate(of[StreamKind.ISTREAM], INPUT, start=5) == changes(
        (5, "+", 1), (5, "+", 2), (8, "+", 3)
    )
    assert evaluate(of[StreamKind.DSTREAM], INPUT, start=8) == changes((9, "+", 2), (13, "+", 3))
    assert evaluate(of[StreamKind.RSTREAM], INPUT, start=5) == changes((8, "+", 2), (8, "+", 3))


def test_start_does_not_cut_streams_inside_the_query():
    # the derived tuples come at 2, 4 and 8, whatever the start of the query above them
    inside = Window(ToStream(StreamKind.ISTREAM, window(4)), TimeWindow(3))
    assert evaluate(inside, INPUT, start=5) == changes(
        (5, "+", 1), (5, "+", 2), (6, "-", 1), (8, "-", 2), (8, "+", 3), (12, "-", 3)
    )


def test_tuples_below_the_horizon_are_ignored():
    assert evaluate(window(4), INPUT, horizons={"s": 4}, start=5) == changes(
        (5, "+", 2), (8, "+", 3), (9, "-", 2), (13, "-", 3)
    )


def test_horizon_hides_tuples_from_rstream_and_from_a_global_aggregate():
    rstream = ToStream(StreamKind.RSTREAM, count(window(4)))
    assert evaluate(rstream, INPUT, horizons={"S": 4}) == changes((4, "+", 1), (8, "+", 2))


def test_only_instants_below_all_watermarks_are_final():
    join = Join((window(4), Window(Scan(T), NOW)))
    inputs = {**INPUT, "T": tuples((4, 0), (8, 0))}
    everything = evaluate(join, inputs)
    assert evaluate(join, inputs, watermarks={"S": 6, "T": 8}) == [
        c for c in everything if c.ts < 6
    ]
    assert evaluate(join, inputs, watermarks={"T": 8}) == [c for c in everything if c.ts < 8]
    assert everything == changes(
        (4, "+", 1, 0),
        (4, "+", 2, 0),
        (5, "-", 1, 0),
        (5, "-", 2, 0),
        (8, "+", 2, 0),
        (8, "+", 3, 0),
        (9, "-", 2, 0),
        (9, "-", 3, 0),
    )


def test_stream_of_a_relation_is_its_istream_and_of_a_stream_itself():
    assert evaluate_stream_of(window(4), INPUT) == changes((2, "+", 1), (4, "+", 2), (8, "+", 3))
    dstream = ToStream(StreamKind.DSTREAM, window(4))
    assert evaluate_stream_of(dstream, INPUT) == evaluate(dstream, INPUT)
    assert evaluate(Scan(S), INPUT) == changes((2, "+", 1), (4, "+", 2), (8, "+", 3))
    assert evaluate(Scan(S), INPUT, start=4) == changes((4, "+", 2), (8, "+", 3))


def test_rstream_passes_slide_boundaries_until_the_last_interval_closes():
    # [Range 4 Slide 5]: 1 over [5,10), 2 over [5,10), 3 over [10,15)
    rstream = ToStream(StreamKind.RSTREAM, count(window(4, slide=5)))
    assert evaluate(rstream, INPUT) == changes((5, "+", 2), (8, "+", 2), (10, "+", 1), (15, "+", 0))


def test_rstream_of_an_input_that_goes_on_passes_all_boundaries_below_its_watermark():
    rstream = ToStream(StreamKind.RSTREAM, count(window(4, slide=5)))
    assert evaluate(rstream, INPUT, watermarks={"S": 26}) == changes(
        (5, "+", 2), (8, "+", 2), (10, "+", 1), (15, "+", 0), (20, "+", 0), (25, "+", 0)
    )


def test_rstream_inside_a_query_ends_with_its_own_inputs():
    # T goes on to 103, but the boundaries belong to S alone: its last interval closes at 15
    inside = Window(ToStream(StreamKind.RSTREAM, count(window(4, slide=5))), UNBOUNDED)
    join = Join((inside, Window(Scan(T), NOW)))
    found = evaluate(join, {**INPUT, "T": tuples((103, 0))})
    assert [c for c in found if c.op == "+"] == changes(
        (103, "+", 0, 0), (103, "+", 1, 0), (103, "+", 2, 0), (103, "+", 2, 0)
    )


def test_rstream_looks_at_tuples_of_every_base_input():
    rstream = ToStream(StreamKind.RSTREAM, Join((window(4), Window(Scan(T), UNBOUNDED))))
    found = evaluate(rstream, {"S": tuples((2, 1)), "T": tuples((3, 0), (6, 0), (7, 0))})
    assert found == changes((3, "+", 1, 0), (6, "+", 1, 0), (6, "+", 1, 0))


def test_a_filtered_global_count_is_born_with_the_first_row_that_passes():
    above_one = Filter(window(0), call(">", Col(0, BIGINT), Lit(1, BIGINT)))
    assert evaluate(count(above_one), INPUT) == changes(
        (4, "+", 1), (5, "-", 1), (5, "+", 0), (8, "-", 0), (8, "+", 1), (9, "-", 1), (9, "+", 0)
    )
