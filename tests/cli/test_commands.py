"""The commands that talk to a service: what they print, where, and how they end."""

import json
from pathlib import Path

import pytest
from tests.api.conftest import LiveService
from tests.cli.conftest import Run
from typer.testing import CliRunner

from thalweg.cli.main import app
from thalweg.engine.site.delays import Took

S = "CREATE STREAM S (a INTEGER, b VARCHAR) TIMESTAMP BY ts;"
_HEADING = [
    "NAME",
    "STATE",
    "KIND",
    "GROUP",
    "ROWS",
    "COST",
    "DELAY",
    "PR",
    "FINAL",
    "UP",
    "TO",
    "COMPLETE",
    "FROM",
    "STREAMS",
    "ERROR",
]


@pytest.fixture
def standing(service: LiveService, run: Run) -> Run:
    """A stream, a query and some of its rows."""
    run("submit", "-e", S + "CREATE QUERY q AS SELECT a, b FROM S [Range 2]")
    rows = [{"ts": 1, "a": 1, "b": "x"}, {"ts": 2, "a": 2}, {"ts": 9, "a": "?"}, {"ts": 9, "a": 3}]
    service.http.post("/streams/S/tuples", json=rows)
    service.site.settle()
    return run


# --- submit


def test_names_go_to_stdout_and_progress_to_stderr(run: Run) -> None:
    done = run("submit", "-e", S + "SELECT a FROM S; SELECT b FROM S")
    assert done.exit_code == 0
    assert done.stdout == "q1\nq2\n"
    assert done.stderr == "✓ created stream S, query q1, query q2\n"


def test_files_folders_and_stdin_are_taken_and_mistakes_listed_at_the_end(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "s.cql").write_text(S)
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "a.cql").write_text("CREATE QUERY first AS SELECT a FROM S")
    (folder / "b.cql").write_text("CREATE QUERY broken AS\nSELECT c FROM S")
    (folder / "c.cql").write_text("CREATE QUERY third AS SELECT b FROM S")
    (folder / "notes.txt").write_text("no CQL")
    done = run(
        "submit",
        str(tmp_path / "s.cql"),
        str(folder),
        "-",
        input="CREATE QUERY last AS SELECT a FROM S",
    )
    assert done.exit_code == 2
    assert done.stdout == "first\nthird\nlast\n"
    lines = done.stderr.splitlines()
    assert f'{folder / "b.cql"}:2:8: error: there is no column "c" in S' in lines[-4]
    assert lines[-3:-1] == ["  SELECT c FROM S", "         ^"]
    assert lines[-1] == "1 of 5 not submitted"


def test_folders_are_taken_with_all_that_is_below_them(run: Run, tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "a" / "s.cql").write_text(S)
    (deep / "t.cql").write_text("CREATE STREAM T (c INTEGER) TIMESTAMP BY ts; SELECT c FROM T")
    assert run("submit", str(tmp_path)).stdout == "q1\n"


def test_every_statement_counts_for_itself(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mixed.cql"
    file.write_text(f"{S}\nSELECT a FROM S;\nSELECT c FROM S;\nSELECT FROM S; SELECT b FROM S")
    done = run("submit", str(file))
    assert done.exit_code == 2
    assert done.stdout == "q1\nq3\n"
    errors = [line for line in done.stderr.splitlines() if " error: " in line]
    assert [e.split(": error: ")[0] for e in errors] == [f"{file}:3:8", f"{file}:4:8"]
    assert done.stderr.endswith("2 of 5 not submitted\n")


def test_a_source_that_can_not_be_opened_keeps_only_its_own_statement_out(run: Run) -> None:
    broken = "CREATE STREAM R (a INTEGER)\n TIMESTAMP BY ts FROM 'nothing.csv'"
    done = run("submit", "-e", f"{S} {broken};\nSELECT a FROM S; SELECT a FROM R; SELECT b FROM S")
    assert done.exit_code == 2
    assert done.stdout == "q1\nq2\n"
    first, second = [x for x in done.stderr.splitlines() if " error: " in x]
    assert first.startswith("<-e>:1:71: error: ")
    assert "nothing.csv" in first
    assert second == '<-e>:3:32: error: there is no stream, relation or view "R"'
    assert done.stderr.endswith("2 of 5 not submitted\n")


def test_paths_in_a_file_start_at_the_file(service: LiveService, run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    folder.mkdir()
    (folder / "r.csv").write_text("ts,a\n1,5\n2,6\n")
    (folder / "r.cql").write_text(
        "CREATE STREAM R (a INTEGER) TIMESTAMP BY ts FROM 'r.csv'; SELECT a FROM R"
    )
    assert run("submit", str(folder / "r.cql")).exit_code == 0
    assert service.site.book.folder_of("R") == str(folder)


@pytest.mark.parametrize("arguments", [["submit"], ["submit", "nothing.cql"]])
def test_nothing_to_submit_is_bad_input(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""


def test_submit_as_json_says_what_was_done(run: Run) -> None:
    done = run("submit", "--json", "-e", S, "-e", "SELECT nothing FROM S")
    assert done.exit_code == 2
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first["name"], first["created"]) == ("<-e 1>", ["S"])
    (error,) = second["errors"]
    assert "there is no column" in error["message"]


# --- ps, streams, explain, stop


def test_ps_lists_queries(standing: Run) -> None:
    done = standing("ps")
    heading, row = done.stdout.splitlines()
    assert heading.split() == _HEADING
    assert row.split()[:5] == ["q", "running", "relation", "-", "4"]
    query = json.loads(standing("ps", "--json").stdout)
    assert query["columns"] == [["a", "INTEGER"], ["b", "VARCHAR"]]


def test_ps_sorts_by_how_long_results_take_beside_the_work(
    standing: Run, service: LiveService
) -> None:
    standing("submit", "-e", "CREATE QUERY last AS SELECT b FROM S [Now]")
    slow, quick = Took(2.0, 0.1, 0.5), Took(0.1, 0.1)
    known = {"q": quick, "last": slow}
    service.site.delays.of = lambda run: known.get(run)  # type: ignore[assignment,arg-type,method-assign]
    rows = [line.split() for line in standing("ps", "--sort", "pr").stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == ["last", "q"]
    assert "2,000 ms 20" in " ".join(rows[0])
    by_name = standing("ps", "--sort", "name", "--json").stdout.splitlines()
    assert [json.loads(line)["name"] for line in by_name] == ["last", "q"]
    assert json.loads(by_name[0])["cpr"] == 5
    assert standing("ps", "--sort", "luck").exit_code == 2


def test_streams_lists_streams(standing: Run) -> None:
    row = standing("streams").stdout.splitlines()[1]
    assert row.split() == ["S", "flowing", "4", "0", "0", "1", "9", "push"]
    stream = json.loads(standing("streams", "--json").stdout)
    assert stream["rejected"] == 1


def test_empty_lists_say_so_on_stderr(run: Run) -> None:
    for command in ("ps", "streams"):
        done = run(command)
        assert done.exit_code == 0
        assert done.stdout == ""
        assert done.stderr.startswith(f"no {'queries' if command == 'ps' else 'streams'}")


def test_explain_takes_a_name_a_file_or_a_text(standing: Run, tmp_path: Path) -> None:
    assert standing("explain", "q").stdout.startswith("Project a, b\n")
    (tmp_path / "x.cql").write_text("SELECT COUNT(*) AS n FROM S")
    assert "Aggregate COUNT(*)" in standing("explain", str(tmp_path / "x.cql")).stdout
    physical = standing("explain", "-e", "SELECT a FROM S [Rows 3]", "--form", "physical")
    assert "Window [Rows 3]" in physical.stdout
    found = json.loads(standing("explain", "q", "--form", "spark", "--json").stdout)
    assert found["form"] == "spark"
    assert standing("explain").exit_code == 2
    assert standing("explain", "nothing").exit_code == 2


def test_explain_shows_what_is_shared_and_why(service: LiveService, standing: Run) -> None:
    assert standing("explain", "--shared").stdout == "no groups: every query runs by itself\n"
    standing("submit", "-e", "CREATE QUERY r AS SELECT a FROM S [Range 1]")
    for ts in range(10, 14):
        service.http.post("/streams/S/tuples", json=[{"ts": ts, "a": 1, "b": "y"}])
        service.site.settle()
    for arguments in (["--shared"], ["--shared", "q"], ["q", "--form", "shared"]):
        assert standing("explain", *arguments).stdout.startswith("group/1 answers 2 queries\n")
    assert json.loads(standing("explain", "--shared", "--json").stdout)[0]["members"] == 2
    why = standing("explain", "--why", "q", "r").stdout
    assert why.startswith("They are in one group, computed once: both read S.\n")
    assert "Every result of r is one of q" not in why  # q has a column more
    assert standing("explain", "--why", "q", "nobody").exit_code == 2
    assert standing("explain", "q", "--why", "q", "r").exit_code == 2
    row = standing("ps").stdout.splitlines()[2].split()
    assert (row[0], row[3], row[4]) == ("r", "group/1", "-")


def test_stop_stops_what_it_can(standing: Run) -> None:
    done = standing("stop", "nothing", "q")
    assert done.exit_code == 2
    assert "✓ q stopped" in done.stderr
    assert "there is no query nothing" in done.stderr
    assert standing("ps", "--json").stdout == ""


# --- results


def test_results_are_lines(standing: Run) -> None:
    assert standing("results", "q").stdout.splitlines() == [
        "1  +  a=1  b=x",
        "2  +  a=2  b=NULL",
        "4  -  a=1  b=x",
        "5  -  a=2  b=NULL",
    ]


def test_results_as_json_have_ids_to_go_on_from(standing: Run) -> None:
    lines = [json.loads(line) for line in standing("results", "q", "--json").stdout.splitlines()]
    assert [line["row"]["a"] for line in lines] == [1, 2, 1, 2]
    rest = standing("results", "q", "--json", "--after", lines[1]["id"]).stdout.splitlines()
    assert [json.loads(line) for line in rest] == lines[2:]
    assert standing("results", "q", "--after", "nonsense").exit_code == 2


def test_now_shows_what_a_result_holds(standing: Run) -> None:
    done = standing("results", "q", "--now")
    assert [line.split() for line in done.stdout.splitlines()] == []
    assert done.stderr == "no rows\nas of 8\n"
    refused = standing("results", "q", "--now", "--follow")
    assert refused.exit_code == 2


def test_a_query_is_answered_once(service: LiveService, standing: Run) -> None:
    service.http.post("/streams/S/tuples", json=[{"ts": 10, "a": 4, "b": "y"}, {"ts": 11, "a": 5}])
    service.site.settle()
    done = standing("query", "SELECT a, b FROM q WHERE a > 3")
    assert [line.split() for line in done.stdout.splitlines()] == [["a", "b"], ["4", "y"]]
    assert done.stderr == "as of 10\n"
    done = standing("query", "SELECT COUNT(*) AS n FROM q", "--json")
    assert json.loads(done.stdout) == {"n": 2}
    wrong = standing("query", "SELECT c FROM q")
    assert wrong.exit_code == 2
    assert 'there is no column "c"' in wrong.stderr


def test_submit_tells_what_a_query_lacks_of_the_past(standing: Run) -> None:
    done = standing("submit", "-e", "CREATE QUERY late AS SELECT a FROM S [Range 7]")
    assert done.exit_code == 0
    assert "note: late: S is at hand from 6 on, so [Range 7] is filling until 13" in done.stderr


def test_many_queries_without_their_past_are_told_of_in_a_few_lines(standing: Run) -> None:
    queries = [f"CREATE QUERY late{i} AS SELECT a FROM S [Range {7 + i}];" for i in range(9)]
    done = standing("submit", "-e", "\n".join(queries))
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    assert len(notes) == 6
    assert notes[-1].startswith("note: and 4 more windows")


def test_a_resume_file_keeps_the_place(service: LiveService, standing: Run, tmp_path: Path) -> None:
    place = str(tmp_path / "place")
    first = standing("results", "q", "--resume", place, "--limit", "3")
    assert len(first.stdout.splitlines()) == 3
    assert standing("results", "q", "--resume", place).stdout.splitlines() == ["5  -  a=2  b=NULL"]
    done = standing("results", "q", "--resume", place)
    assert (done.stdout, done.stderr) == ("", "no rows since then\n")
    service.http.post("/streams/S/finish")
    service.site.settle()
    assert len(standing("results", "q", "--resume", place).stdout.splitlines()) == 2


def test_following_ends_with_the_query(service: LiveService, standing: Run) -> None:
    service.http.post("/streams/S/finish")
    done = standing("results", "q", "--follow", "--json")
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 6
    assert "q finished" in done.stderr


def test_following_shows_the_end_of_a_version(service: LiveService, standing: Run) -> None:
    standing(
        "submit", "-e", "CREATE OR REPLACE QUERY q AS SELECT a, b FROM S [Range 2] WHERE a > 1"
    )
    service.http.post("/streams/S/finish")
    service.site.settle()
    done = standing("results", "q", "--follow")
    assert done.exit_code == 0
    assert "-- version 1 ended at 9" in done.stdout.splitlines()


# --- no service


def test_a_service_that_is_not_there_is_told_from_other_failures() -> None:
    for arguments in (["ps"], ["streams"], ["stop", "q"], ["submit", "-e", "x"], ["results", "q"]):
        done = CliRunner().invoke(app, [*arguments, "--url", "http://127.0.0.1:9"])
        assert done.exit_code == 3
        assert "thalweg dev" in done.stderr
    done = CliRunner().invoke(
        app, ["results", "q", "-f", "--give-up-s", "0", "--url", "http://127.0.0.1:9"]
    )
    assert done.exit_code == 3


# --- push


def test_json_lines_are_pushed_and_count_once(run: Run, tmp_path: Path) -> None:
    run("submit", "-e", S + "CREATE QUERY n AS SELECT COUNT(*) AS n FROM S")
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f'{{"ts": {i}, "a": {i}}}\n' for i in range(25)) + '{"ts": "?"}\n')
    for accepted, code in ((25, 2), (0, 0)):
        done = run("push", "S", str(file), "--batch-id", "monday", "--batch-rows", "10", "--json")
        assert done.exit_code == code
        assert json.loads(done.stdout)["accepted"] == accepted
    assert run("push", "S", "--finish", input='{"ts": 99}\n').stderr == (
        "1 accepted, 0 late, 0 rejected\n"
    )
    assert run("results", "n", "-f").stdout.splitlines()[-1] == "99  +  n=26"


def test_a_push_waits_while_the_engine_is_behind(
    service: LiveService, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("submit", "-e", S)
    monkeypatch.setattr("thalweg.api.routes.streams.PATIENCE_S", 0.01)
    backlog = iter([10**9] * 5)
    monkeypatch.setattr(service.site.engine.landing, "backlog", lambda: next(backlog, 0))
    done = run("push", "S", "--json", input='{"ts": 1, "a": 1}\n')
    assert json.loads(done.stdout)["accepted"] == 1


def test_what_can_not_be_pushed_is_bad_input(run: Run) -> None:
    run("submit", "-e", S)
    assert run("push", "S", "nothing.jsonl").exit_code == 2
    assert run("push", "T", input="{}\n").exit_code == 2
    assert run("push", "S", input="no json\n").exit_code == 2


def test_a_bad_line_is_told_by_its_number_and_the_others_are_taken(
    run: Run, tmp_path: Path
) -> None:
    run("submit", "-e", S)
    file = tmp_path / "rows.jsonl"
    lines = [f'{{"ts": {i}, "a": {i}}}' for i in range(25)]
    file.write_text("\n".join([*lines[:13], "not json", *lines[13:]]) + "\n")
    done = run("push", "S", str(file), "--batch-rows", "10")
    assert done.exit_code == 2
    assert "25 accepted, 0 late, 1 rejected" in done.stderr
    assert "line 14: not a JSON object: 'not json'" in done.stderr


def test_a_push_to_a_finished_stream_is_an_error(run: Run) -> None:
    run("submit", "-e", S)
    run("push", "S", "--finish", input='{"ts": 1, "a": 1}\n')
    done = run("push", "S", input='{"ts": 2, "a": 1}\n')
    assert done.exit_code == 2
    assert "S was finished; drop and re-create it to push again" in done.stderr


def test_no_rows_says_for_what_a_query_waits(service: LiveService, run: Run) -> None:
    run("submit", "-e", S + "CREATE QUERY q AS SELECT a FROM S [Now] WHERE a > 5")
    assert "no rows yet: it waits for S: no tuple has come yet" in run("results", "q").stderr
    run("push", "S", input='{"ts": 1, "a": 1}\n{"ts": 7, "a": 9}\n')
    service.site.settle()
    done = run("results", "q")
    assert "no rows yet: nothing matched up to 7" in done.stderr
    run("push", "S", "--finish", input='{"ts": 8, "a": 1}\n')


def test_instants_are_shown_as_their_streams_write_them(service: LiveService, run: Run) -> None:
    run(
        "submit",
        "-e",
        "CREATE STREAM T (a INTEGER, at TIMESTAMP) TIMESTAMP BY at;"
        "CREATE QUERY q AS SELECT a FROM T [Now]",
    )
    rows = [{"a": 1, "at": "2026-01-02 03:04:05.678"}, {"a": 2, "at": "2026-01-02 03:04:06"}]
    service.http.post("/streams/T/tuples", json=rows)
    service.site.settle()
    assert run("results", "q").stdout.splitlines()[0] == "2026-01-02 03:04:05.678  +  a=1"


# --- numbers and mistakes, as they were written


def test_a_decimal_is_shown_with_all_its_digits(run: Run, service: LiveService) -> None:
    run("submit", "-e", "CREATE STREAM D (x DECIMAL(38, 2)) TIMESTAMP BY ts")
    run("submit", "-e", "CREATE QUERY money AS SELECT x FROM D [Range 10]")
    long = "123456789012345678901234567890.10"
    rows = [{"ts": 1, "x": long}, {"ts": 2, "x": "7"}]
    service.http.post("/streams/D/tuples", json=rows)
    service.site.settle()
    assert run("results", "money").stdout == f"1  +  x={long}\n"
    assert run("results", "money", "--now").stdout.splitlines()[1].strip() == long
    assert run("results", "money", "--now", "--json").stdout == f'{{"x": {long}}}\n'
    assert run("query", "SELECT x FROM money", "--json").stdout == f'{{"x": {long}}}\n'
    shell = run("shell", input="SELECT x FROM money;\n\\results money\n")
    assert shell.stdout.count(long) == 2, shell.output


@pytest.mark.parametrize("command", [("query",), ("explain", "-e")])
def test_a_mistake_says_once_that_it_is_one(run: Run, command: tuple[str, ...]) -> None:
    done = run(*command, "SELECT a FROM Nowhere")
    assert done.exit_code == 2
    assert done.stderr.startswith("<cql>:1:15: error: there is no stream")
    assert done.stderr.count("error:") == 1


def test_instants_before_all_time_are_told_in_words(run: Run, service: LiveService) -> None:
    run("submit", "-e", S + "CREATE QUERY q AS SELECT a FROM S [Range 2]")
    run("submit", "-e", "CREATE OR REPLACE QUERY q AS SELECT a, b FROM S [Range 2]")
    service.http.post("/streams/S/tuples", json=[{"ts": 1, "a": 1}, {"ts": 2, "a": 2}])
    service.site.settle()
    ended = "-- version 1 ended before it had said anything"
    assert ended in run("results", "q").stdout.splitlines()
    assert ended in run("shell", input="\\results q\n").stdout
    assert run("explain", "q").stdout.startswith("version 2, from the beginning on\n")


def test_a_table_holds_from_the_beginning_on(run: Run, service: LiveService) -> None:
    run("submit", "-e", "CREATE TABLE T (a INTEGER); CREATE QUERY held AS SELECT a FROM T")
    run("submit", "-e", "INSERT INTO T VALUES (1)")
    service.site.settle()
    assert run("results", "held").stdout == "the beginning  +  a=1\n"
    assert "as of the beginning" in run("query", "SELECT a FROM T").stderr


def test_a_date_for_an_instant_is_refused_with_what_to_do(run: Run) -> None:
    run("submit", "-e", S)
    done = run("push", "S", input='{"ts": "2026-01-01 10:00:00", "a": 1}\n')
    assert done.exit_code == 2
    assert "is not a valid BIGINT: for dates and times, list ts TIMESTAMP among" in done.stderr
