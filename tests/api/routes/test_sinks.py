from pathlib import Path

from tests.api.conftest import LiveService


def test_rows_are_written_where_one_asks(service: LiveService, tmp_path: Path) -> None:
    http = service.http
    http.post("/queries", content="CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; SELECT a FROM S")
    made = http.post("/queries/q1/sinks", json={"target": "out.jsonl", "folder": str(tmp_path)})
    assert made.json() == {"name": "sink-1"}
    http.post("/streams/S/tuples", json=[{"ts": 1, "a": 1}, {"ts": 2, "a": 2}])
    service.site.settle()
    assert (tmp_path / "out.jsonl").read_text() == '{"query":"q1","ts":1,"op":"+","row":{"a":1}}\n'
    assert http.get("/queries/q1").json()["sinks"] == [
        {"name": "sink-1", "target": "out.jsonl", "error": None}
    ]
    assert http.delete("/queries/q1/sinks/sink-1").status_code == 204
    assert http.get("/queries/q1").json()["sinks"] == []


def test_a_folder_with_results_of_another_run_is_refused(
    service: LiveService, tmp_path: Path
) -> None:
    (tmp_path / "run-1-from-start-upto-1.parquet").write_bytes(b"")
    service.http.post(
        "/queries", content="CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; SELECT a FROM S"
    )
    answer = service.http.post("/queries/q1/sinks", json={"target": f"parquet:{tmp_path}"})
    assert answer.status_code == 422
    assert "results that this sink did not write" in answer.json()["detail"]
    assert service.http.get("/queries/q1").json()["sinks"] == []


def test_options_of_a_sink_are_kept(service: LiveService, tmp_path: Path) -> None:
    http = service.http
    http.post("/queries", content="CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; SELECT a FROM S")
    target = {"target": "parquet:rows", "folder": str(tmp_path)}
    made = http.post("/queries/q1/sinks", json={**target, "options": {"Max_Rows": 1}})
    assert made.status_code == 201, made.text
    (sink,) = http.get("/sinks").json()
    assert sink["options"] == {"max_rows": "1"}
    http.post("/streams/S/tuples", json=[{"ts": n, "a": n} for n in range(4)])
    service.site.settle()
    assert list((tmp_path / "rows").glob("*.parquet"))  # not as old as others would have to be
    wrong = http.post("/queries/q1/sinks", json={**target, "options": {"colour": "red"}})
    assert wrong.status_code == 422
    assert "colour" in wrong.json()["detail"]
