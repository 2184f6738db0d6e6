"""`thalweg replay` as people and scripts meet it: what it prints where, and its exit codes."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from thalweg.cli.main import app

SCRIPT = """
CREATE STREAM S (a INTEGER, b VARCHAR) TIMESTAMP BY ts FROM 'data/s.csv';
CREATE QUERY first AS SELECT a FROM S [Range 1] WHERE a > 1;
CREATE QUERY second AS SELECT COUNT(*) AS n FROM S [Unbounded];
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "s.csv").write_text("a,b,ts\n1,x,1\n2,y,2\n3,z,3\n")
    (tmp_path / "s.cql").write_text(SCRIPT)
    return tmp_path / "s.cql"


def run(*arguments: object):
    return CliRunner().invoke(app, ["replay", *map(str, arguments)], catch_exceptions=False)


def said(output: str) -> list[tuple]:
    entries = [json.loads(line) for line in output.splitlines()]
    return [(e["query"], e["ts"], e["op"], *e["row"].values()) for e in entries]


CHANGELOG = [
    ("second", 1, "+", 1),
    ("first", 2, "+", 2),
    ("second", 2, "-", 1),
    ("second", 2, "+", 2),
    ("first", 3, "+", 3),
    ("second", 3, "-", 2),
    ("second", 3, "+", 3),
    ("first", 4, "-", 2),
    ("first", 5, "-", 3),
]
IN_PROCESS = ("--master", "in-process")


@pytest.mark.parametrize("engine", [("--engine", "reference"), IN_PROCESS], ids=str)
def test_paths_are_relative_to_the_file_and_data_goes_to_stdout(script: Path, engine):
    result = run(script, *engine)
    assert result.exit_code == 0
    assert said(result.stdout) == CHANGELOG
    assert result.stderr == ""


def test_one_query_can_be_chosen_in_any_case(script: Path):
    result = run(script, *IN_PROCESS, "--query", "FIRST")
    assert said(result.stdout) == [x for x in CHANGELOG if x[0] == "first"]


def test_as_a_stream_only_what_enters_is_printed(script: Path):
    result = run(script, *IN_PROCESS, "--stream")
    assert said(result.stdout) == [x for x in CHANGELOG if x[2] == "+"]


def test_with_out_files_are_written_and_nothing_printed(script: Path, tmp_path: Path):
    result = run(script, *IN_PROCESS, "--out", tmp_path / "out")
    assert result.stdout == ""
    assert said((tmp_path / "out" / "first.jsonl").read_text()) == [
        x for x in CHANGELOG if x[0] == "first"
    ]


def test_a_mistake_in_the_text_is_shown_with_its_place(script: Path):
    script.write_text(SCRIPT.replace("SELECT a FROM", "SELECT c FROM"))
    result = run(script, *IN_PROCESS)
    assert result.exit_code == 2
    assert result.stdout == ""
    first, source, caret = result.stderr.splitlines()[:3]
    assert first.startswith(f"{script}:3:30: error: ")
    assert source.index("SELECT c") + len("SELECT ") == caret.index("^")


def test_a_mistake_in_a_source_is_shown_where_the_stream_is_defined(script: Path):
    script.write_text(SCRIPT.replace("data/s.csv", "data/t.csv"))
    result = run(script, *IN_PROCESS)
    assert result.exit_code == 2
    first, source, caret, *_ = result.stderr.splitlines()
    assert first.startswith(f"{script}:2:15: error: there is no file")
    assert first.endswith("did you mean s.csv?")
    assert source.index("S (a") == caret.index("^")


def test_a_mistake_that_is_found_while_reading_is_shown_there_too(script: Path, tmp_path: Path):
    (tmp_path / "data" / "s.csv").write_text("a,ts\n1,1\n")
    result = run(script, *IN_PROCESS)
    assert result.exit_code == 2
    assert f"{script}:2:15: error: S: {tmp_path}/data/s.csv has no column b" in result.stderr


def test_warnings_are_shown_and_the_run_goes_on(script: Path):
    script.write_text(SCRIPT + "CREATE QUERY pairs AS SELECT x.a FROM S x, S y WHERE x.a = y.a;\n")
    result = run(script, *IN_PROCESS)
    assert result.exit_code == 0
    assert f"{script}:5:" in result.stderr
    assert "warning" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--query", "frist"], "has no query frist; did you mean first?"),
        (["--engine", "reference", "--data-dir", "x"], "has no data directory"),
    ],
)
def test_what_cannot_be_run_ends_with_2(script: Path, arguments, message):
    result = run(script, *IN_PROCESS, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_file_that_is_not_there_or_says_nothing_ends_with_2(tmp_path: Path):
    result = run(tmp_path / "none.cql")
    assert result.exit_code == 2
    assert "can't read" in result.stderr
    (tmp_path / "empty.cql").write_text("-- nothing yet\n")
    result = run(tmp_path / "empty.cql")
    assert result.exit_code == 2
    assert "has no query" in result.stderr


def test_a_run_that_fails_ends_with_1(script: Path, tmp_path: Path):
    (tmp_path / "data" / "s.parquet").write_bytes(b"not Parquet")
    script.write_text(SCRIPT.replace("s.csv", "s.parquet"))
    result = run(script, *IN_PROCESS)
    assert result.exit_code == 1
    assert "the replay failed" in result.stderr
    assert "Traceback" not in result.stderr


def test_losses_are_told_on_stderr(script: Path, tmp_path: Path):
    with (tmp_path / "data" / "s.csv").open("a") as file:
        file.write("4,x,1\nfive,x,4\n")
    result = run(script, *IN_PROCESS)
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "S: 1 tuples came too late and do not count",
        "S: 1 rows were rejected, the first because of a: 'five' is not a valid INTEGER",
    ]


def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path):
    (tmp_path / "s.json").write_text("".join(f'{{"a":{i},"ts":{i}}}\n' for i in range(50_000)))
    (tmp_path / "s.cql").write_text(
        "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts FROM 's.json'; SELECT a FROM S [Now];"
    )
    command = [Path(sys.executable).with_name("thalweg"), "replay", "s.cql", *IN_PROCESS]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"query":"q1","ts":0')
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_killed_and_started_again_it_writes_what_it_would_have_written(tmp_path: Path):
    rows = (f'{{"a":{i % 7},"ts":{i}}}\n' for i in range(6_000))
    (tmp_path / "s.json").write_text("".join(rows))
    (tmp_path / "s.cql").write_text(
        "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts FROM 's.json';"
        "CREATE QUERY q AS SELECT a, COUNT(*) AS n FROM S [Range 50] GROUP BY a;"
    )
    command = [Path(sys.executable).with_name("thalweg"), "replay", "s.cql", *IN_PROCESS]
    command += ["--tick-rows", "100"]
    subprocess.run([*command, "--out", "whole"], cwd=tmp_path, timeout=100, check=True)
    again = [*command, "--out", "killed", "--data-dir", "data"]
    chance, kills = random.Random(5), 0
    while True:
        process = subprocess.Popen(again, cwd=tmp_path)
        try:
            assert process.wait(chance.uniform(0.8, 1.5) * (1 + kills / 3)) == 0
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
            kills += 1
    assert 0 < kills < 100
    whole, killed = (tmp_path / name / "q.jsonl" for name in ("whole", "killed"))
    assert killed.read_bytes() == whole.read_bytes()


def test_rows_that_are_written_need_a_running_service(script: Path):
    script.write_text(
        "CREATE TABLE T (a INTEGER); INSERT INTO T VALUES (1); CREATE QUERY q AS SELECT a FROM T"
    )
    done = run(script, "--engine", "reference")
    assert done.exit_code == 2
    assert "INSERT or DELETE, which only a running service takes" in done.stderr


def test_tables_are_loaded_before_all_tuples(script: Path, tmp_path: Path):
    (tmp_path / "names.csv").write_text("id,name\n1,one\n2,two\n")
    (tmp_path / "s.csv").write_text("ts,a\n-5,1\n3,2\n")
    script = tmp_path / "tables.cql"
    script.write_text(
        """CREATE STREAM S (a INTEGER) TIMESTAMP BY ts BIGINT FROM 's.csv';
        CREATE TABLE T (id INTEGER PRIMARY KEY, name VARCHAR) FROM 'names.csv';
        CREATE QUERY q AS ISTREAM SELECT name FROM S [Now] JOIN T ON a = id"""
    )
    found = [run(script, "--engine", e, "--master", "in-process") for e in ("shared", "reference")]
    assert found[0].stdout == found[1].stdout
    assert [json.loads(line)["ts"] for line in found[0].stdout.splitlines()] == [-5, 3]
