"""thalweg shell, from a pipe."""

from pathlib import Path

import pytest
from tests.api.conftest import LiveService
from tests.cli.conftest import Run

from thalweg.cli.client import Service
from thalweg.cli.shell.lines import Completer, piped
from thalweg.cli.shell.session import Session

S = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts;\n"


def test_statements_end_with_a_semicolon_wherever_it_stands(run: Run) -> None:
    typed = S + "CREATE QUERY q AS\nSELECT a FROM S -- not; here\nWHERE a > 1; DROP QUERY\nq;"
    done = run("shell", input=typed)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == ["created stream S", "created query q", "dropped query q"]


def test_a_mistake_is_told_and_the_next_statement_run(run: Run) -> None:
    done = run("shell", input=S + "CREATE QUERY q AS SELECT b FROM S;\nDROP STREAM S;\n")
    assert done.exit_code == 2
    assert 'error: there is no column "b" in S' in done.stderr
    assert done.stdout.splitlines() == ["created stream S", "dropped stream S"]


def test_commands_show_what_stands(service: LiveService, run: Run) -> None:
    run("shell", input=S + "CREATE QUERY q AS SELECT a FROM S [Range 9];")
    service.http.post("/streams/S/tuples", json=[{"ts": 1, "a": 5}, {"ts": 2, "a": 6}])
    service.site.settle()
    done = run("shell", input="\\d\n\\d q\n\\results q\n\\explain q\n\\q\nnever read")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["stream", "S", "flowing", "a", "INTEGER"]
    assert lines[1].split() == ["query", "q", "running", "a", "INTEGER"]
    assert "CREATE QUERY q AS SELECT a FROM S [Range 9]" in lines
    assert "1  +  a=5" in [line.rstrip() for line in lines]
    assert "Project" in done.stdout


def test_one_of_what_stands_is_described_in_words(
    service: LiveService, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(
        "shell",
        input="CREATE STREAM R (sensor VARCHAR, c DOUBLE) TIMESTAMP BY at TIMESTAMP "
        "RESOLUTION 1 SECOND; CREATE VIEW V AS SELECT sensor FROM R [Now];"
        "CREATE QUERY q AS SELECT c FROM R [Range 1 MINUTE];"
        "CREATE SINK s FROM q INTO 'jsonl:q.jsonl' ; CREATE TABLE T (id INTEGER PRIMARY KEY);",
    )
    moments = ("2026-01-01T00:00:00", "2026-01-01T00:00:05")
    service.http.post("/streams/R/tuples", json=[{"at": m, "c": 1.5} for m in (*moments, None)])
    service.site.settle()
    done = run("shell", input="\\d\n\\d r\n\\d V\n\\d q\n\\d s\n\\d T\n")
    assert done.exit_code == 0, done.stderr
    assert "view    V           sensor VARCHAR" in done.stdout
    for lines in (
        ["stream R, flowing", "  sensor  VARCHAR", "  c       DOUBLE"],
        ["timestamp      at, an instant is 1 second", "source         push"],
        ["arrived        3 (1 rejected)", "watermark      2026-01-01 00:00:05"],
        ["view V", "  sensor  VARCHAR", "CREATE VIEW V AS SELECT sensor FROM R [Now]"],
        ["query q, running", "  c  DOUBLE", "result         relation over R"],
        ["final up to    2026-01-01 00:00:05"],
        ["sink           s → jsonl:q.jsonl", "CREATE QUERY q AS SELECT c FROM R [Range 1 MINUTE]"],
        ["sink s, writing", "query          q", "target         jsonl:q.jsonl"],
        ["table T, waiting", "  id  INTEGER", "source         push"],
    ):
        assert "\n".join(lines) in done.stdout
    for raw in ("resolution_us", "is_temporal", "flow ", "None", "{", "1767225600"):
        assert raw not in done.stdout


def test_a_query_that_begins_with_less_is_told_here_too(service: LiveService, run: Run) -> None:
    run("shell", input=S + "CREATE QUERY q AS SELECT a FROM S [Range 2];")
    service.http.post("/streams/S/tuples", json=[{"ts": t, "a": t} for t in range(9)])
    service.site.settle()
    done = run("shell", input="CREATE QUERY r AS SELECT a FROM S [Range 60];\n")
    assert "note: r: S is at hand from" in done.stderr
    assert "created query r" in done.stdout


def test_rows_that_were_changed_are_told(run: Run) -> None:
    done = run("shell", input="CREATE TABLE T (a INTEGER); INSERT INTO T VALUES (1), (2);")
    assert done.stdout.splitlines() == ["created table T", "rows changed by 1 statement"]


def test_a_command_that_is_none_is_told(run: Run) -> None:
    done = run("shell", input="\\nothing\n")
    assert done.exit_code == 2
    assert r"there is no command \nothing: \? lists them" in done.stderr


def test_a_select_is_answered_once_from_what_is_now(service: LiveService, run: Run) -> None:
    run("shell", input=S + "CREATE QUERY q AS SELECT a FROM S [Range 9];")
    service.http.post("/streams/S/tuples", json=[{"ts": 1, "a": 5}, {"ts": 2, "a": 6}])
    service.site.settle()
    done = run(
        "shell", input="SELECT a + 1 AS b FROM q;\nWITH x AS (SELECT a FROM q) SELECT * FROM x;"
    )
    assert done.exit_code == 0, done.stderr
    assert [line.split() for line in done.stdout.splitlines()] == [["b"], ["6"], ["a"], ["5"]]
    assert "as of 1" in done.stderr
    assert [q.name for q in service.site.queries()] == ["q"]


def test_mistakes_in_a_select_are_shown_where_they_are(run: Run) -> None:
    done = run("shell", input=S + "SELECT b FROM S [Now];\nDROP STREAM S;\n")
    assert done.exit_code == 2
    assert 'there is no column "b" in S' in done.stderr
    assert done.stdout.splitlines() == ["created stream S", "dropped stream S"]


@pytest.mark.parametrize(
    "typed", ["ISTREAM SELECT a FROM S [Now];", "\\watch SELECT a FROM S [Now];"]
)
def test_rows_as_they_come_are_shown_until_their_end_and_leave_nothing(
    service: LiveService, run: Run, typed: str
) -> None:
    run("shell", input=S)
    service.http.post("/streams/S/tuples", json=[{"ts": 1, "a": 5}])
    service.http.post("/streams/S/finish")
    service.site.settle()
    done = run("shell", input=typed + "\n")
    assert done.exit_code == 0, done.stderr
    assert service.site.queries() == []


def test_names_and_keywords_are_completed_as_they_are_typed(service: LiveService, run: Run) -> None:
    run("shell", input="CREATE STREAM Selected (amount INTEGER) TIMESTAMP BY ts;")
    with Service(service.url) as client:
        complete = Completer(Session(client).words)
        assert complete("sel", 0) == "Selected"
        assert complete("sel", 1) == "select"
        assert complete("SEL", 0) == "SELECT"
        assert complete("amo", 0) == "amount "
        assert complete("zz", 0) is None


def test_lines_of_a_pipe_end() -> None:
    lines = piped(["a\n", "b"])
    assert [lines.read(is_first=True) for _ in range(3)] == ["a", "b", None]
