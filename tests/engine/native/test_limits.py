import pytest

from thalweg.cql import compile_script
from thalweg.engine.native.limits import check, check_expr
from thalweg.engine.native.unsupported import Unsupported
from thalweg.plan import functions
from thalweg.plan.expr import Col, Lit
from thalweg.plan.nodes import Scan, Window
from thalweg.plan.types import BOOLEAN, DOUBLE, INTEGER, TIMESTAMP, VARCHAR
from thalweg.plan.windows import TimeWindow

STREAM = "CREATE STREAM S (a DOUBLE, b VARCHAR) TIMESTAMP BY ts BIGINT;"


@pytest.mark.parametrize(
    ("expr", "what"),
    [
        (functions.cast(Col(0, DOUBLE), VARCHAR), "CAST of DOUBLE to VARCHAR"),
        (functions.call("like", Col(0, VARCHAR), Col(1, VARCHAR)), "LIKE with a computed pattern"),
        (functions.call("round", Col(0, DOUBLE), Col(1, INTEGER)), "ROUND to a computed number"),
        (functions.call("extract", Col(0, VARCHAR), Col(1, TIMESTAMP)), "EXTRACT of a computed"),
        (functions.call("date_trunc", Col(0, VARCHAR), Col(1, TIMESTAMP)), "DATE_TRUNC to a comp"),
    ],
)
def test_what_spark_does_otherwise_is_refused_by_name(expr, what):
    with pytest.raises(Unsupported, match=rf"native can't run {what}.*Use --engine"):
        check_expr(expr)
    nested = functions.call("or", Lit(True, BOOLEAN), functions.call("is_null", expr))
    with pytest.raises(Unsupported, match=what):
        check_expr(nested)


def test_constants_in_the_same_places_are_taken():
    check_expr(functions.call("round", Col(0, DOUBLE)))
    check_expr(functions.call("round", Col(0, DOUBLE), Lit(2, INTEGER)))
    check_expr(functions.call("like", Col(0, VARCHAR), Lit("a%", VARCHAR)))


@pytest.mark.parametrize(
    "query",
    ["SELECT CAST(a AS VARCHAR) AS t FROM S [Now]", "SELECT a FROM S [Now] WHERE b LIKE b || '%'"],
)
def test_expressions_of_a_plan_are_checked_before_it_runs(query):
    plan = compile_script(f"{STREAM} CREATE QUERY q AS {query};").queries[0].plan
    with pytest.raises(Unsupported):
        check(plan)


def test_window_beyond_sparks_timestamps_is_refused():
    stream = compile_script(STREAM).catalog.streams()[0]
    with pytest.raises(Unsupported, match=r"a window of \d+ instants"):
        check(Window(Scan(stream), TimeWindow(2**60)))
