"""thalweg shell, from a pipe."""

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
        assert complete("amo", 0) == "amount"
        assert complete("zz", 0) is None


def test_lines_of_a_pipe_end() -> None:
    lines = piped(["a\n", "b"])
    assert [lines.read(is_first=True) for _ in range(3)] == ["a", "b", None]
