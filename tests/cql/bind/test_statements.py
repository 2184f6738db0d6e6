"""`bind_statement`: one statement against a catalog."""

import pytest

from thalweg.cql import CqlError, parse_script
from thalweg.cql.bind import bind_statement
from thalweg.plan.catalog import Catalog, QueryDef, StreamDef, ViewDef
from thalweg.plan.nodes import Project, Scan, Window
from thalweg.plan.windows import NOW


def bound(text: str, catalog: Catalog) -> StreamDef | ViewDef | QueryDef:
    (statement,) = parse_script(text)
    return bind_statement(statement, catalog, text).definition


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
    change = bind_statement(statement, catalog, "DROP VIEW busy")
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
    change = bind_statement(statement, catalog, "SELECT A FROM X [Now]", default_name="mine")
    assert change.definition.name == "mine"


def test_a_quoted_view_can_not_be_dropped_while_it_is_read(catalog: Catalog) -> None:
    view = bound('CREATE VIEW "odd "" Name" AS SELECT A FROM X [Now]', catalog)
    reader = bound('SELECT A FROM "ODD "" name"', catalog.with_definition(view))
    both = catalog.with_definition(view).with_definition(reader)
    with pytest.raises(CqlError, match="still used by query q1"):
        bound('DROP VIEW "odd "" name"', both)
