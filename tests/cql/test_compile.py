import pytest

from thalweg.cql import CqlError, compile_each, compile_script
from thalweg.plan.catalog import Catalog, QueryDef, StreamDef, ViewDef

STREAM = "CREATE STREAM s (a INT) TIMESTAMP BY ts;"


def test_a_script_gives_catalog_queries_and_changes() -> None:
    script = compile_script(f"{STREAM} CREATE VIEW v AS SELECT a FROM s; SELECT a FROM v;")
    assert [type(c.definition) for c in script.changes] == [StreamDef, ViewDef, QueryDef]
    assert [q.name for q in script.queries] == ["q1"]
    assert script.queries[0] is script.catalog.find("Q1")
    assert len(script.statements) == 3
    assert script.warnings == ()


def test_the_catalog_it_started_from_is_left_alone() -> None:
    before = compile_script(STREAM).catalog
    after = compile_script("CREATE VIEW v AS SELECT a FROM s; DROP VIEW v; DROP STREAM s", before)
    assert list(before.definitions) == ["s"]
    assert after.catalog == Catalog()


def test_nothing_is_registered_when_one_statement_fails() -> None:
    before = compile_script(STREAM).catalog
    with pytest.raises(CqlError):
        compile_script("CREATE VIEW v AS SELECT a FROM s; SELECT b FROM s", before)
    assert list(before.definitions) == ["s"]


def test_bare_queries_are_numbered_past_names_that_are_taken() -> None:
    before = compile_script(f"{STREAM} CREATE QUERY q1 AS SELECT a FROM s").catalog
    text = "SELECT a FROM s; SELECT a FROM s; CREATE QUERY Q3 AS SELECT a FROM s; SELECT a FROM s"
    assert [q.name for q in compile_script(text, before).queries] == ["q2", "q4", "Q3", "q5"]


def test_queries_that_the_script_drops_again_are_not_listed() -> None:
    script = compile_script(f"{STREAM} CREATE QUERY k AS SELECT a FROM s; DROP QUERY k")
    assert script.queries == ()
    assert [(c.definition.name, c.dropped) for c in script.changes] == [
        ("s", False),
        ("k", False),
        ("k", True),
    ]


def test_definitions_keep_the_text_of_their_statement() -> None:
    script = compile_script(f"{STREAM} /* c */ CREATE QUERY k AS\n SELECT a FROM s ; ")
    assert script.queries[0].text == "CREATE QUERY k AS\n SELECT a FROM s"
    again = compile_script(f"{STREAM} {script.queries[0].text}")
    assert again.queries[0].plan == script.queries[0].plan


def test_from_now_is_kept() -> None:
    script = compile_script(f"{STREAM} CREATE QUERY k FROM NOW AS SELECT a FROM s; SELECT a FROM s")
    assert [q.from_now for q in script.queries] == [True, False]


def test_warnings_have_a_place_and_a_severity() -> None:
    text = f"{STREAM}\nSELECT x.a FROM s x, s [Now] y"
    (warning,) = compile_script(text).warnings
    assert (warning.line, warning.column, warning.length) == (2, 17, 3)
    assert warning.render(text, "f").startswith("f:2:17: warning: the join keeps every tuple")


def test_the_name_of_the_text_is_in_the_message() -> None:
    with pytest.raises(CqlError, match=r"^auctions\.cql:1:1: error"):
        compile_script("SELEC", name="auctions.cql")


def test_what_only_fails_because_of_an_earlier_error_is_not_reported() -> None:
    text = "CREATE VIEW v AS SELECT a FROM nowhere; SELECT a FROM v; DROP VIEW v; SELECT 1 FROM w"
    with pytest.raises(CqlError) as caught:
        compile_script(text)
    assert [d.message.split('"')[1] for d in caught.value.diagnostics] == ["nowhere", "w"]


def test_an_empty_text_is_an_empty_script() -> None:
    script = compile_script(" ; -- nothing\n;")
    assert (script.statements, script.queries) == ((), ())


def test_names_do_not_slow_down_with_the_number_of_queries() -> None:
    # 3,000 statements: quadratic work on the catalog or on names would take minutes here.
    script = compile_script(STREAM + "SELECT a FROM s [Now];" * 3000)
    assert script.queries[-1].name == "q3000"


# --- each statement for itself


def test_of_several_texts_what_is_right_stands_and_the_rest_is_listed() -> None:
    first, second = compile_each(
        [
            "CREATE STREAM X (a INTEGER) TIMESTAMP BY ts;"
            " SELECT FROM X; SELECT b FROM X; SELECT a FROM X",
            "SELECT a FROM X; CREATE VIEW V AS SELECT a FROM Y; SELECT a FROM V; 'open",
        ]
    )
    assert [c.definition.name for c in first.changes] == ["X", "q2"]
    assert [(e.line, e.column) for e in first.errors] == [(1, 53), (1, 68)]
    assert [q.name for q in second.queries] == ["q3"]
    # What fails because of another failure is listed too: it does not stand.
    assert [e.message for e in second.errors] == [
        'there is no stream, relation or view "Y"',
        'there is no stream, relation or view "V"',
        "the ' that opens here is never closed",
    ]
    assert len(second.statements) == len(second.changes) == 1
    assert first.catalog is second.catalog
    assert sorted(first.catalog.definitions) == ["q2", "q3", "x"]
