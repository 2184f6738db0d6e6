"""A statement that is made from a template is what parsing and binding would have made of it."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cql.test_fuzz import TEXTS
from tests.drawn import examples

from thalweg.cql import CqlError, compile_script
from thalweg.cql.bind.statements import Change, Nothing, changes_of
from thalweg.cql.errors import Mistake
from thalweg.cql.outline import outlined
from thalweg.cql.parser import parse_at, parse_each
from thalweg.cql.syntax import CreateQuery, Statement
from thalweg.cql.templates import MOST, Templates
from thalweg.plan.catalog import Catalog, QueryDef

STREAM = "CREATE STREAM s (a INTEGER, v DOUBLE, w VARCHAR, d DATE) TIMESTAMP BY ts;"


def _change(statement: Statement, catalog: Catalog, text: str) -> Change:
    changes = changes_of(statement, catalog, text, "bare")
    assert not isinstance(changes, Nothing)
    return changes[0]


def compiled(text: str, catalog: Catalog) -> Change:
    """Without any template."""
    return _change(parse_at(text, 0), catalog, text)


def taught(templates: Templates, text: str, catalog: Catalog) -> None:
    statement = parse_at(text, 0)
    assert isinstance(statement, CreateQuery)
    change = _change(statement, catalog, text)
    for _ in range(2):
        templates.learn(statement, change, catalog, text)


def recalled(templates: Templates, text: str, catalog: Catalog) -> Change | None:
    found = templates.recall(text, 0)
    if found is None or not found[0].fits(catalog):
        return None
    return found[0].change(catalog, text, "bare")


def form(change: Change) -> tuple[object, ...]:
    query = change.definition
    assert isinstance(query, QueryDef)
    return query.name, query.plan, query.text, query.from_now, change.warnings, change.dropped


def queries_of(text: str) -> list[str]:
    statements, _ = parse_each(text)
    return [text[slice(*s.span)] for s in statements if isinstance(s, CreateQuery)]


# --- drawn texts

QUERIES = [query for text in TEXTS for query in queries_of(text)]
WHOLE = ["0", "1", "2", "3", "5", "10"]
NUMBERS = [*WHOLE, "2147483648", "0.5", "1.5", ".25", "1.50", "2.", "1e2"]
STRINGS = ["''", "'a'", "'it''s'", "'%a_'", "'2024-02-28'", "'2024-02-29'", "'2024-02-30'"]
STRINGS += ["'2024-01-01 10:00:00'", "'hour'", "'3'"]
SEEN: Counter[str] = Counter()


def with_other_constants(draw: st.DrawFn, text: str) -> str:
    """Of few values, so that some of them are equal: that is where rules change."""
    statement = outlined(text, 0)
    if statement is None:
        return text
    pool = draw(st.sampled_from((WHOLE, WHOLE, NUMBERS)))
    few = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=2))
    for start, end in reversed(statement.constants):
        if draw(st.booleans()):
            other = draw(st.sampled_from(STRINGS if text[start] == "'" else few))
            text = f"{text[:start]}{other}{text[end:]}"
    return text


def check(catalog: Catalog, first: str, second: str) -> None:
    templates = Templates()
    try:
        taught(templates, first, catalog)
    except Mistake:
        return
    found = recalled(templates, second, catalog)
    if found is None:
        SEEN["compiled"] += 1
        return
    SEEN["recalled" if first != second else "recalled as it was"] += 1
    assert form(found) == form(compiled(second, catalog))


@st.composite
def pairs_of_the_case_files(draw: st.DrawFn) -> tuple[str, str]:
    text = with_other_constants(draw, draw(st.sampled_from(QUERIES)))
    return text, with_other_constants(draw, text)


CONDITIONS = (
    *("{c} > {n}", "{c} = {n}", "{c} <> -{n}", "{n} <= {c}", "{c} BETWEEN {n} AND {n}"),
    *("{c} NOT BETWEEN - {n} AND {n}", "{c} IN ({n}, {n}, -{n})", "NOT {c} < {n}", "{n} < {n}"),
    *("{c} + {n} > {n} * {c}", "{c} > {n} OR {c} > {n}", "CAST({n} AS DOUBLE) < {c}"),
    *("s = {s}", "s LIKE {s}", "s IN ({s}, {s})", "d > DATE {s}", "t < TIMESTAMP {s}", "d < {s}"),
    *("t - t < INTERVAL {n} SECOND", "i = {n} = l", "CASE WHEN i > {n} THEN {n} ELSE l END = {n}"),
    *("EXTRACT(HOUR FROM t) = {n}", "date_trunc({s}, t) = t", "substring(s, {n}) = {s}"),
    *("i IN (SELECT A FROM X [Range {n} Second] WHERE B > {n})", "m = {n}", "b = (i > {n})"),
    *("EXISTS (SELECT A FROM X [Now] WHERE A + {n} = i AND B = {n} GROUP BY A)", "{n} / i = {n}"),
)
SHAPES = (
    "SELECT i, l + 1 FROM T [Range 5] WHERE {p}",
    "CREATE QUERY {q} AS ISTREAM SELECT * FROM T [Range {n} Seconds] WHERE {p} AND {p}",
    "CREATE QUERY {q} FROM NOW AS SELECT l + {n} AS k, COUNT(*) FROM T [Rows {n}] "
    "WHERE {p} AND {p} GROUP BY l + {n} HAVING COUNT(*) > {n}",
    "SELECT i FROM T [Now] WHERE NOT ({p} AND ({p} OR {p})) -- as it is\n",
    "SELECT T.i FROM T [Range 5 Second] JOIN T [Now] U ON T.l = U.l AND {j} WHERE {j}",
    "SELECT T.i FROM T [Range 5 Second] LEFT JOIN T [Now] U ON T.l = U.l AND {j} WHERE {j}",
    "SELECT n FROM (SELECT i AS n FROM T [Range {n}] WHERE {p}) WHERE n > {n}",
)


@st.composite
def pairs_of_conditions(draw: st.DrawFn) -> tuple[str, str]:
    text = draw(st.sampled_from(SHAPES))
    while "{p}" in text or "{j}" in text:
        of_two = "T.i < {n} AND U.f BETWEEN {n} AND {n}"
        condition = draw(st.sampled_from(CONDITIONS))
        column = draw(st.sampled_from(("i", "l", "f", "m")))
        condition = condition.replace("{c}", column)
        text = text.replace("{p}", condition, 1) if "{p}" in text else text.replace("{j}", of_two)
    text = text.replace("{n}", "1").replace("{s}", "'2024-02-29'")
    text = with_other_constants(draw, text)
    return text.replace("{q}", "one"), with_other_constants(draw, text.replace("{q}", "Other2"))


@given(pairs_of_the_case_files())
def test_whatever_is_recalled_is_what_is_compiled(catalog: Catalog, pair: tuple[str, str]) -> None:
    check(catalog, *pair)


def test_conditions_of_all_kinds_are_filled_as_they_are_bound(catalog: Catalog) -> None:
    @settings(max_examples=examples(150))
    @given(pairs_of_conditions())
    def drawn(pair: tuple[str, str]) -> None:
        check(catalog, *pair)

    SEEN.clear()
    drawn()
    assert SEEN["recalled"] > 25, SEEN
    assert SEEN["compiled"] > 10, SEEN


# --- what varies and what does not


@pytest.fixture
def of_s() -> Catalog:
    return compile_script(STREAM).catalog


VARIED = [
    ("v > 1", "v > 2"),
    ("v > 1.5", "v > 2.5"),
    ("v > -1", "v > -2"),
    ("a = 1 AND a = 2", "a = 3 AND a = 3"),  # of equal parts there is one
    ("v BETWEEN 1 AND 2", "v BETWEEN 2 AND 1"),
    ("w = 'a'", "w = 'it''s'"),
    ("d > DATE '2024-02-28'", "d > DATE '2024-02-29'"),
    ("a IN (1, 2)", "a IN (2, 2)"),
]
FIXED = [
    ("v > 1", "v > 1.5"),  # another type
    ("v > 1.5", "v > 1.25"),
    ("a > 1", "a > 2147483648"),
    ("v > 1", "v > -1"),
    ("d > '2024-02-28'", "d > '2024-02-29 10:00:00'"),
    ("a IN (1, 2)", "a IN (1, 2, 3)"),
    ("d > DATE '2024-02-28'", "d > DATE '2024-02-30'"),  # a mistake
]


@pytest.mark.parametrize(("first", "second"), VARIED)
def test_constants_of_conditions_vary(of_s: Catalog, first: str, second: str) -> None:
    templates, text = Templates(), "CREATE QUERY {} AS SELECT a FROM s [Now] WHERE {}"
    taught(templates, text.format("x", first), of_s)
    found = recalled(templates, text.format("y", second), of_s)
    assert found is not None
    assert form(found) == form(compiled(text.format("y", second), of_s))


@pytest.mark.parametrize(("first", "second"), FIXED)
def test_constants_of_other_types_are_compiled(of_s: Catalog, first: str, second: str) -> None:
    templates, text = Templates(), "SELECT a FROM s [Now] WHERE {}"
    taught(templates, text.format(first), of_s)
    assert recalled(templates, text.format(first), of_s) is not None
    assert recalled(templates, text.format(second), of_s) is None


def test_constants_elsewhere_are_a_part_of_what_a_query_is(of_s: Catalog) -> None:
    templates = Templates()
    text = (
        "SELECT a + {}, COUNT(*) FROM s [Range {}] WHERE v > {} GROUP BY a + {} HAVING a + {} > {}"
    )
    taught(templates, text.format(1, 5, 7, 1, 1, 3), of_s)
    assert recalled(templates, text.format(1, 5, 8, 1, 1, 3), of_s) is not None
    for changed in ((2, 5, 7, 2, 2, 3), (1, 6, 7, 1, 1, 3), (1, 5, 7, 1, 1, 4)):
        assert recalled(templates, text.format(*changed), of_s) is None


def test_numbers_vary_beside_a_string_that_is_a_day(of_s: Catalog) -> None:
    templates, text = Templates(), "SELECT a FROM s [Now] WHERE d > '2024-02-28' AND v > {}"
    taught(templates, text.format(1), of_s)
    found = recalled(templates, text.format(2), of_s)
    assert found is not None
    assert form(found) == form(compiled(text.format(2), of_s))


def test_a_template_is_made_of_the_second_statement(of_s: Catalog) -> None:
    templates, text = Templates(), "SELECT a FROM s [Now] WHERE v > 1"
    statement = parse_at(text, 0)
    assert isinstance(statement, CreateQuery)
    templates.learn(statement, compiled(text, of_s), of_s, text)
    assert recalled(templates, text, of_s) is None
    templates.learn(statement, compiled(text, of_s), of_s, text)
    assert recalled(templates, text, of_s) is not None


def test_a_statement_with_a_warning_is_compiled_for_its_place(of_s: Catalog) -> None:
    templates, text = Templates(), "SELECT x.a FROM s x, s [Now] y WHERE x.v > 1"
    assert compiled(text, of_s).warnings
    taught(templates, text, of_s)
    assert recalled(templates, text, of_s) is None


def test_names_that_stand_for_something_else_are_noticed() -> None:
    views = STREAM + "CREATE VIEW z AS SELECT {} AS a FROM s;"
    templates, text = Templates(), "SELECT a FROM z WHERE a > 1"
    before = compile_script(views.format("a")).catalog
    after = compile_script(views.format("v")).catalog
    taught(templates, text, before)
    assert recalled(templates, text, before) is not None
    assert recalled(templates, text, after) is None
    taught(templates, text, after)
    found = recalled(templates, text, after)
    assert found is not None
    assert form(found) == form(compiled(text, after))


def test_what_is_known_is_forgotten_when_it_is_too_much(of_s: Catalog) -> None:
    templates, text = Templates(), "SELECT a FROM s [Now] WHERE v > 1"
    taught(templates, text, of_s)
    for number in range(MOST):
        other = f"SELECT a AS a{number} FROM s [Now]"
        statement = parse_at(other, 0)
        assert isinstance(statement, CreateQuery)
        templates.learn(statement, compiled(other, of_s), of_s, other)
    assert recalled(templates, text, of_s) is None
    assert len(templates._forms) + len(templates._made) <= MOST


# --- through scripts, where templates are used


def test_a_script_of_many_alike_is_that_of_each_by_itself() -> None:
    queries = [
        f"CREATE QUERY k{i} AS SELECT a FROM s [Range {i % 3}] WHERE v > {i}.5 AND a <> {i % 2}"
        for i in range(40)
    ]
    script = compile_script(f"{STREAM} {';'.join(queries)} ; ")
    catalog = compile_script(STREAM).catalog
    for found, text in zip(script.queries, queries, strict=True):
        assert found.plan == compile_script(text, catalog).queries[0].plan
        assert (found.text, found.name) == (text, text.split()[2])
    assert [s.name.text for s in script.statements[1:] if s.name is not None] == [
        f"k{i}" for i in range(40)
    ]


def test_mistakes_among_many_alike_have_their_places() -> None:
    alike = "CREATE QUERY k{} AS SELECT a FROM s [Now] WHERE d > DATE '2024-02-{}';\n"
    text = STREAM + "\n" + "".join(alike.format(i, i) for i in range(20, 32))
    with pytest.raises(CqlError) as caught:
        compile_script(text)
    assert [(d.line, d.message) for d in caught.value.diagnostics] == [
        (12, "'2024-02-30' is not a date"),
        (13, "'2024-02-31' is not a date"),
    ]


def test_a_name_that_is_taken_is_a_mistake_among_many_alike_too() -> None:
    alike = "CREATE QUERY {} AS SELECT a FROM s [Now] WHERE v > {};\n"
    text = STREAM + "\n" + "".join(alike.format(n, i) for i, n in enumerate("abcdeafS"))
    with pytest.raises(CqlError) as caught:
        compile_script(text)
    assert [(d.line, d.column, d.message) for d in caught.value.diagnostics] == [
        (7, 14, 'there already is a query "a"'),
        (9, 14, 'there already is a stream "s"'),
    ]


def test_a_stream_made_anew_is_read_as_it_is_now() -> None:
    query = "SELECT a FROM s [Now] WHERE a > {};"
    same = "".join(query.format(i) for i in range(3))
    other = "CREATE STREAM s (x VARCHAR, a DOUBLE) TIMESTAMP BY ts;"
    drops = "DROP QUERY q1; DROP QUERY q2; DROP QUERY q3; DROP STREAM s;"
    script = compile_script(f"{STREAM} {same} {drops} {other} {same}")
    alone = compile_script(f"{other} {same}")
    assert [q.plan for q in script.queries] == [q.plan for q in alone.queries]
