from pathlib import Path

import pytest

from thalweg.cli import cql_inputs as texts
from thalweg.cli.cql_inputs import Text, batches_of, files_of, parts_of
from thalweg.cli.exits import CommandFailed

HERE = Path()


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "LARGEST_PART", 10)


def test_a_short_text_is_one_part() -> None:
    assert list(parts_of(Text("f", "SELECT 1;\nSELECT 2", HERE))) == [
        Text("f", "SELECT 1;\nSELECT 2", HERE)
    ]
    assert list(parts_of(Text("f", "", HERE))) == [Text("f", "", HERE)]


@pytest.mark.usefixtures("short_parts")
def test_a_long_text_is_cut_between_statements_and_every_part_knows_its_line() -> None:
    cql = "SELECT 1234;\n\nSELECT 2345; SELECT 3;\nSELECT 4567;  \nSELECT 5"
    parts = list(parts_of(Text("f", cql, HERE)))
    assert "".join(p.cql for p in parts) == cql
    assert [(p.cql, p.first_line) for p in parts] == [
        ("SELECT 1234;\n", 1),
        ("\nSELECT 2345; SELECT 3;\n", 2),
        ("SELECT 4567;  \n", 4),
        ("SELECT 5", 5),
    ]


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize(
    "cql",
    [
        "SELECT 'abcdefgh;\n', 'it''s;\n'",
        'SELECT "abcdefgh;\n"',
        "-- abcdefgh;\n",
        "/* abcdefgh;\n */",
    ],
)
def test_strings_names_and_comments_are_not_cut(cql: str) -> None:
    (part,) = parts_of(Text("f", cql + " x", HERE))
    assert part.cql == cql + " x"


@pytest.mark.usefixtures("short_parts")
def test_batches_hold_many_small_texts_and_few_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "LARGEST_BATCH", 3)
    given = [Text(str(i), "12", HERE) for i in range(4)] + [Text("long", "x" * 20, HERE)]
    assert [[t.name for t in batch] for batch in batches_of(given)] == [
        ["0", "1", "2"],
        ["3", "long"],
    ]


def test_a_folder_without_queries_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"has no \.cql files"):
        files_of([str(tmp_path)])
