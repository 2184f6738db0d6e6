"""Which classes those want who read a stream of due rows."""

from thalweg.cql import compile_script
from thalweg.runtime.network.labels.wanted import numbers_of, numbers_read

SCHEMA = "(k BIGINT, due_for VARCHAR, t BIGINT) TIMESTAMP BY t"


def test_numbers_stand_in_the_conditions() -> None:
    (due,) = compile_script(f'CREATE STREAM "due/S" {SCHEMA}').catalog.streams()
    where = ("HAS_ANY(due_for, '3,17') AND k < 3", "HAS_ANY(due_for, '4')")
    assert numbers_of(due, where) == {3, 4, 17}
    assert numbers_of(due, (*where, "k = 1")) is None
    assert numbers_of(due, None) is None


def test_each_reader_has_its_own() -> None:
    script = compile_script(
        f"""CREATE STREAM "due/S" {SCHEMA};
        CREATE QUERY a AS SELECT k FROM "due/S" [Range 9] WHERE HAS_ANY(due_for, '3,17');
        CREATE QUERY b AS SELECT k FROM "due/S" [Now];"""
    )
    (due,) = script.catalog.streams()
    assert numbers_read(due, script.catalog) == [{3, 17}, None]


def test_a_stream_without_labels_is_an_older_version_s() -> None:
    script = compile_script(
        """CREATE STREAM "due/S" (k BIGINT, of_7 BOOLEAN, t BIGINT) TIMESTAMP BY t;
        CREATE QUERY a AS SELECT k FROM "due/S" [Now] WHERE of_7"""
    )
    (due,) = script.catalog.streams()
    assert numbers_read(due, script.catalog) == [None]
