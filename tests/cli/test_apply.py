"""thalweg apply: files are what shall stand."""

import json
from pathlib import Path

import pytest
from tests.api.conftest import LiveService
from tests.cli.conftest import Run

S = "CREATE STREAM S (a INTEGER, b VARCHAR) TIMESTAMP BY ts;\n"
V = "CREATE VIEW V AS SELECT a FROM S [Range 100];\n"
Q = "CREATE QUERY q AS SELECT a FROM V;\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    # In an order in which nobody could submit them.
    (folder / "1.cql").write_text(Q)
    (folder / "2.cql").write_text(V)
    (folder / "3.cql").write_text(S)
    return folder


def standing(service: LiveService) -> list[str]:
    return sorted(d.name for d in service.site.catalog.definitions.values())


def push(service: LiveService, *rows: dict) -> None:
    service.http.post("/streams/S/tuples", json=list(rows))
    service.site.settle()


def test_files_come_to_stand_whatever_their_order_and_twice_is_nothing(
    service: LiveService, run: Run, project: Path
) -> None:
    done = run("apply", str(project))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == ["+ create stream S", "+ create view V", "+ create query q"]
    again = run("apply", str(project))
    assert again.stdout == ""
    assert "nothing to do: 3 stand as the files say" in again.stderr


def test_a_dry_run_does_nothing(service: LiveService, run: Run, project: Path) -> None:
    done = run("apply", "--dry-run", str(project))
    assert len(done.stdout.splitlines()) == 3
    assert standing(service) == []


def test_what_differs_is_replaced_and_what_is_in_no_file_is_dropped(
    service: LiveService, run: Run, project: Path
) -> None:
    run("apply", str(project))
    run("submit", "-e", "CREATE QUERY extra AS SELECT a, COUNT(*) AS n FROM S GROUP BY a")
    push(service, {"ts": 1, "a": 1}, {"ts": 2, "a": 20})
    (project / "2.cql").write_text("CREATE VIEW V AS SELECT a FROM S [Range 100] WHERE a > 5")
    done = run("apply", str(project))
    assert [line.split("  ")[0] for line in done.stdout.splitlines()] == [
        "~ replace view V",
        "~ replace query q",
        "- drop query extra",
    ]
    assert "- drop query extra  (state lost: 1 rows of state" in done.stdout
    push(service, {"ts": 3, "a": 30})
    assert run("results", "q").stdout.splitlines() == [
        "1  +  a=1",
        "-- version 1 ended at 2",
        "2  -  a=1",
        "2  +  a=20",
    ]
    assert standing(service) == ["S", "V", "q"]
    assert run("apply", str(project)).stdout == ""


def test_a_view_and_its_reader_change_together(
    service: LiveService, run: Run, project: Path
) -> None:
    run("apply", str(project))
    (project / "2.cql").write_text("CREATE VIEW V AS SELECT b FROM S [Range 100]")
    (project / "1.cql").write_text("CREATE QUERY q AS SELECT b FROM V")
    done = run("apply", str(project))
    assert done.exit_code == 0, done.stderr
    assert [c[0] for c in service.site.queries()[0].columns] == ["b"]


def test_a_new_column_is_added_and_older_queries_stay(
    service: LiveService, run: Run, project: Path
) -> None:
    run("apply", str(project))
    (project / "3.cql").write_text(S.replace("b VARCHAR", "b VARCHAR, c INTEGER"))
    done = run("apply", str(project))
    assert done.stdout.splitlines() == ["~ alter stream S: add column c INTEGER"]
    assert run("apply", str(project)).stdout == ""
    assert [s.version for s in service.site.queries()] == [1]
    (project / "6.cql").write_text("CREATE QUERY r AS SELECT a, c FROM S [Range 100]")
    assert run("apply", str(project)).stdout.splitlines() == ["+ create query r"]
    (project / "6.cql").write_text("CREATE QUERY r AS\n  SELECT S.a, S.c FROM S [Range 100]")
    assert run("apply", str(project)).stdout == ""


def test_another_stream_is_recreated_with_all_that_reads_it(
    service: LiveService, run: Run, project: Path
) -> None:
    run("apply", str(project))
    push(service, {"ts": 1, "a": 1}, {"ts": 2, "a": 20})
    (project / "3.cql").write_text(S.replace("a INTEGER", "a BIGINT"))
    done = run("apply", str(project))
    assert done.exit_code == 0, done.stderr
    assert [line.split("  ")[0] for line in done.stdout.splitlines()] == [
        "! recreate stream S",
        "! recreate view V",
        "! recreate query q",
    ]
    assert run("apply", str(project)).stdout == ""


def test_a_finished_query_is_recreated(service: LiveService, run: Run, project: Path) -> None:
    run("apply", str(project))
    push(service, {"ts": 1, "a": 1})
    service.http.post("/streams/S/finish")
    service.site.settle()
    (project / "1.cql").write_text("CREATE QUERY q AS SELECT a FROM V WHERE a > 5")
    assert "! recreate query q" in run("apply", str(project)).stdout


def test_mistakes_are_told_in_their_files_and_nothing_is_done(
    service: LiveService, run: Run, project: Path
) -> None:
    (project / "4.cql").write_text("CREATE QUERY r AS\nSELECT nothing FROM S; SELECT a FROM S;")
    (project / "5.cql").write_text("DROP QUERY q")
    done = run("apply", str(project))
    assert done.exit_code == 2
    assert f'{project}/4.cql:2:8: error: there is no column "nothing" in S' in done.stderr
    assert f"{project}/4.cql:2:24: error: a query to apply needs a name" in done.stderr
    assert f"{project}/5.cql:1:1: error: files to apply say what shall stand" in done.stderr
    assert standing(service) == []


def test_sinks_are_applied_too(
    service: LiveService, run: Run, project: Path, tmp_path: Path
) -> None:
    (project / "w.cql").write_text("CREATE SINK w FROM q INTO 'jsonl:out'")
    assert "+ create sink w" in run("apply", str(project)).stdout
    assert run("apply", str(project)).stdout == ""
    push(service, {"ts": 1, "a": 1}, {"ts": 2, "a": 20})
    assert json.loads((project / "out").read_text())["row"] == {"a": 1}
    (project / "w.cql").write_text("CREATE SINK w FROM q INTO 'jsonl:other'")
    assert "~ replace sink w" in run("apply", str(project)).stdout
    assert "writing" in run("sinks").stdout
