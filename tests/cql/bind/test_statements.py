"""`bind_statement`: one statement against a catalog."""

import pytest

from thalweg.cql import CqlError, parse_script
from thalweg.cql.bind import Change, Nothing, bind_statement
from thalweg.cql.syntax import Statement
from thalweg.plan.catalog import Catalog, Definition, QueryDef, StreamDef
from thalweg.plan.nodes import Project, Scan, Window
from thalweg.plan.windows import NOW


def changed(statement: Statement, catalog: Catalog, text: str, **options: str) -> Change:
    changes = bind_statement(statement, catalog, text, **options)
    assert not isinstance(changes, Nothing)
    return changes[0]


def bound(text: str, catalog: Catalog) -> Definition:
    (statement,) = parse_script(text)
    return changed(statement, catalog, text).definition


def test_a_query_becomes_a_plan_over_the_catalogs_streams(catalog: Catalog) -> None:
    query = bound("SELECT A FROM X [Now]", catalog)
    stream = catalog.find("X")
    assert isinstance(query, QueryDef)
    assert isinstance(stream, StreamDef)
    assert query.name == "q1"
    assert isinstance(query.plan, Project)
    assert query.plan.input == Window(Scan(stream), NOW)


def test_the_catalog_does_not_change(catalog: Catalog) -> None:
    before = dict(catalog.definitions)
    bound("CREATE VIEW fresh AS SELECT A FROM X [Now]", catalog)
    assert dict(catalog.definitions) == before


def test_errors_show_the_text(catalog: Catalog) -> None:
    with pytest.raises(CqlError, match="SELECT D FROM X"):
        bound("SELECT D FROM X [Now]", catalog)


def test_a_drop_tells_what_it_takes(catalog: Catalog) -> None:
    (statement,) = parse_script("DROP VIEW busy")
    change = changed(statement, catalog, "DROP VIEW busy")
    assert change.dropped
    assert change.definition is catalog.find("Busy")


@pytest.mark.parametrize(
    "reader",
    [
        "CREATE VIEW r AS SELECT seller FROM busy",
        "CREATE QUERY r AS SELECT * FROM (SELECT n FROM Busy) b",
        "CREATE QUERY r AS SELECT itemID FROM Cheap UNION SELECT n FROM Busy",
        "CREATE QUERY r AS ISTREAM SELECT itemID FROM Cheap WHERE itemID IN (SELECT n FROM Busy)",
        "CREATE QUERY r AS SELECT itemID FROM Cheap WHERE NOT (EXISTS (SELECT 1 FROM Busy) OR 1=2)",
        "CREATE QUERY r AS WITH Cheap AS (SELECT n FROM Busy) SELECT * FROM Cheap",
        "CREATE QUERY r AS SELECT n FROM Busy ORDER BY n LIMIT 3",
        "CREATE QUERY r AS SELECT itemID, (SELECT MAX(n) FROM Busy) AS m FROM Cheap",
        "CREATE QUERY r AS SELECT itemID FROM Cheap WHERE itemID > (SELECT MAX(n) FROM Busy)",
        "CREATE QUERY r AS SELECT itemID FROM Cheap ORDER BY (SELECT MAX(n) FROM Busy) LIMIT 1",
        "CREATE QUERY r AS SELECT itemID FROM Cheap GROUP BY itemID"
        " HAVING COUNT(*) > (SELECT MAX(n) FROM Busy)",
        "CREATE QUERY r AS SELECT COUNT(*) FROM Cheap GROUP BY (SELECT MAX(n) FROM Busy)",
        "CREATE QUERY r AS SELECT SUM(itemID - (SELECT MAX(n) FROM Busy)) FROM Cheap",
        "CREATE QUERY r AS SELECT a.itemID FROM Cheap a JOIN Cheap b"
        " ON a.itemID = (SELECT MAX(n) FROM Busy)",
        "CREATE QUERY r AS SELECT c.itemID FROM Cheap c LEFT JOIN Busy b ON b.n = c.itemID",
    ],
)
def test_a_view_can_not_be_dropped_while_it_is_read(reader: str, catalog: Catalog) -> None:
    with_reader = catalog.with_definition(bound(reader, catalog))
    with pytest.raises(CqlError, match="still used by"):
        bound("DROP VIEW Busy", with_reader)


def test_a_name_of_with_is_not_the_catalogs(catalog: Catalog) -> None:
    reader = bound(
        "CREATE QUERY r AS WITH Busy AS (SELECT A FROM X [Now]) SELECT * FROM Busy", catalog
    )
    assert bound("DROP VIEW Busy", catalog.with_definition(reader)) is catalog.find("Busy")


def test_a_bare_query_takes_the_default_name(catalog: Catalog) -> None:
    (statement,) = parse_script("SELECT A FROM X [Now]")
    change = changed(statement, catalog, "SELECT A FROM X [Now]", default_name="mine")
    assert change.definition.name == "mine"


def test_a_quoted_view_can_not_be_dropped_while_it_is_read(catalog: Catalog) -> None:
    view = bound('CREATE VIEW "odd "" Name" AS SELECT A FROM X [Now]', catalog)
    reader = bound('SELECT A FROM "ODD "" name"', catalog.with_definition(view))
    both = catalog.with_definition(view).with_definition(reader)
    with pytest.raises(CqlError, match="still used by query q1"):
        bound('DROP VIEW "odd "" name"', both)


def noted(text: str, catalog: Catalog) -> str:
    (statement,) = parse_script(text)
    nothing = bind_statement(statement, catalog, text)
    assert isinstance(nothing, Nothing)
    return nothing.note


def test_what_is_there_already_is_not_created_again(catalog: Catalog) -> None:
    text = "CREATE VIEW IF NOT EXISTS busy AS SELECT A FROM X [Now]"
    assert noted(text, catalog) == "view Busy already stands"


def test_if_not_exists_is_for_things_of_one_kind(catalog: Catalog) -> None:
    with pytest.raises(CqlError, match='"Busy" is a view, not a query'):
        bound("CREATE QUERY IF NOT EXISTS busy AS SELECT A FROM X [Now]", catalog)


def test_what_is_not_there_need_not_be_dropped(catalog: Catalog) -> None:
    assert noted("DROP QUERY IF EXISTS nobody", catalog) == "there is no query nobody to drop"


def test_a_thing_may_be_called_if(catalog: Catalog) -> None:
    assert bound("CREATE QUERY if AS SELECT A FROM X [Now]", catalog).name == "if"


def test_a_replaced_query_keeps_a_plain_create_as_its_text(catalog: Catalog) -> None:
    both = catalog.with_definition(bound("CREATE QUERY r AS SELECT A FROM X [Now]", catalog))
    for text in (
        "CREATE OR REPLACE QUERY r AS SELECT B FROM X [Now]",
        "ALTER QUERY r AS SELECT B FROM X [Now]",
    ):
        (statement,) = parse_script(text)
        change = changed(statement, both, text)
        assert change.replaced is both.find("r")
        assert change.text == "CREATE QUERY r AS SELECT B FROM X [Now]"


def test_a_query_that_is_replaced_by_itself_stands(catalog: Catalog) -> None:
    both = catalog.with_definition(bound("CREATE QUERY r AS SELECT A FROM X [Now]", catalog))
    same = "CREATE OR REPLACE QUERY r AS SELECT  X.A FROM X [Now]"
    assert noted(same, both) == "query r is that already"


def test_only_a_query_that_stands_is_altered(catalog: Catalog) -> None:
    with pytest.raises(CqlError, match='there is no query "r"'):
        bound("ALTER QUERY r AS SELECT A FROM X [Now]", catalog)


def test_readers_of_a_replaced_view_are_replaced_with_it(catalog: Catalog) -> None:
    reader = bound("CREATE QUERY r AS SELECT seller FROM Busy", catalog)
    other = bound("CREATE QUERY o AS SELECT A FROM X [Now]", catalog)
    both = catalog.with_definition(reader).with_definition(other)
    text = "CREATE OR REPLACE VIEW Busy AS SELECT A AS seller FROM X [Now]"
    (statement,) = parse_script(text)
    changes = bind_statement(statement, both, text)
    assert not isinstance(changes, Nothing)
    assert [c.definition.name for c in changes] == ["Busy", "r"]
    assert changes[1].replaced is reader


def test_a_view_is_not_replaced_under_a_query_that_could_not_stand_on_it(catalog: Catalog) -> None:
    both = catalog.with_definition(bound("CREATE QUERY r AS SELECT seller FROM Busy", catalog))
    with pytest.raises(CqlError, match="query r could not stand on it"):
        bound("CREATE OR REPLACE VIEW Busy AS SELECT A FROM X [Now]", both)


def test_a_query_takes_its_sinks_with_it(catalog: Catalog) -> None:
    both = catalog.with_definition(bound("CREATE QUERY r AS SELECT A FROM X [Now]", catalog))
    both = both.with_definition(bound("CREATE SINK s FROM R INTO 'jsonl:out'", both))
    (statement,) = parse_script("DROP QUERY r")
    changes = bind_statement(statement, both, "DROP QUERY r")
    assert not isinstance(changes, Nothing)
    assert [(c.definition.name, c.dropped) for c in changes] == [("s", True), ("r", True)]
