"""thalweg test: a project's own tests."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from thalweg.cli.main import app

CQL = (
    "CREATE QUERY hot AS SELECT id, celsius FROM Reading [Range 2] WHERE celsius > 30;\n"
    "CREATE STREAM Reading (id INTEGER, celsius DOUBLE) TIMESTAMP BY ts FROM 'kafka:h:1/t';"
)
EXPECTED = (
    '{"query":"hot","ts":2,"op":"+","row":{"id":7,"celsius":31.5}}\n'
    '{"query":"hot","ts":5,"op":"-","row":{"id":7,"celsius":31.5}}\n'
)


@pytest.fixture
def case(tmp_path: Path) -> Path:
    (tmp_path / "q.cql").write_text(CQL)
    case = tmp_path / "a hot day"
    (case / "inputs").mkdir(parents=True)
    (case / "expected").mkdir()
    (case / "inputs" / "Reading.csv").write_text("ts,id,celsius\n1,7,20\n2,7,31.5\n9,7,10\n")
    (case / "expected" / "hot.jsonl").write_text(EXPECTED)
    return case


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["test", *map(str, arguments)])


def test_a_case_passes_that_says_what_is_expected(case: Path) -> None:
    done = run(case.parent)
    assert done.exit_code == 0, done.stderr
    assert "✓ a hot day" in done.stderr
    assert "1 of 1 passed" in done.stderr


def test_a_case_that_fails_shows_the_difference(case: Path) -> None:
    path = case / "expected" / "hot.jsonl"
    path.write_text(EXPECTED.replace("31.5", "32.5", 1))
    done = run(case.parent)
    assert done.exit_code == 1
    assert "✗ a hot day" in done.stderr
    assert '  -{"query":"hot","ts":2,"op":"+","row":{"id":7,"celsius":32.5}}' in done.stderr
    assert '  +{"query":"hot","ts":2,"op":"+","row":{"id":7,"celsius":31.5}}' in done.stderr


def test_what_is_expected_can_be_written(case: Path) -> None:
    path = case / "expected" / "hot.jsonl"
    path.write_text("")
    assert run(case.parent).exit_code == 1
    assert run(case.parent, "--update").exit_code == 0
    assert path.read_text() == EXPECTED


def test_the_order_and_form_of_expected_lines_do_not_matter(case: Path) -> None:
    first, second = EXPECTED.splitlines()
    loose = second.replace(",", ", ") + "\n\n" + first
    (case / "expected" / "hot.jsonl").write_text(loose)
    assert run(case.parent).exit_code == 0


def test_json_lines_are_inputs_too(case: Path) -> None:
    (case / "inputs" / "Reading.csv").unlink()
    (case / "inputs" / "Reading.jsonl").write_text(
        '{"ts":2,"id":7,"celsius":31.5}\n{"ts":9,"id":7,"celsius":1}\n'
    )
    assert run(case.parent).exit_code == 0


def test_what_can_not_be_run_is_told(case: Path) -> None:
    (case / "inputs" / "Reading.csv").unlink()
    done = run(case.parent)
    assert done.exit_code == 2
    assert "query hot reads Reading, and there is no" in done.stderr
    (case / "expected" / "cold.jsonl").write_text("")
    assert "there is no query cold (there are: hot)" in run(case.parent).stderr
    (case.parent / "q.cql").write_text("CREATE QUERY hot AS SELECT x FROM Nothing")
    done = run(case.parent)
    assert done.exit_code == 2
    assert 'q.cql:1:35: error: there is no stream, relation or view "Nothing"' in done.stderr


def test_a_folder_without_cases_says_how_to_make_one(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.exit_code == 2
    assert "has no cases: make FOLDER/CASE/inputs/STREAM.csv" in done.stderr


def test_numbers_are_compared_by_value_and_with_all_their_digits(tmp_path: Path) -> None:
    (tmp_path / "q.cql").write_text(
        "CREATE STREAM Sale (cents DECIMAL(38, 2), share DOUBLE) TIMESTAMP BY ts;"
        "CREATE QUERY sold AS ISTREAM SELECT cents, share FROM Sale [Now];"
    )
    case = tmp_path / "a sale"
    (case / "inputs").mkdir(parents=True)
    (case / "expected").mkdir()
    long = "123456789012345678901234567890.12"
    (case / "inputs" / "Sale.csv").write_text(f"ts,cents,share\n1,12.50,2\n2,{long},0.5\n")
    expected = case / "expected" / "sold.jsonl"
    expected.write_text("")
    assert run(tmp_path, "--update").exit_code == 0
    assert run(tmp_path).exit_code == 0
    written = expected.read_text()
    assert "12.50" in written
    assert long in written
    expected.write_text(written.replace("12.50", "12.5").replace("2.0", "2"))
    assert run(tmp_path).exit_code == 0
    expected.write_text(written.replace(long, long[:-1] + "3"))
    assert run(tmp_path).exit_code == 1
