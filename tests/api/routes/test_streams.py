import json
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from tests.api.conftest import LiveService
from tests.engine.site.conftest import said

from thalweg.api.bodies import ARROW, NDJSON

S = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE QUERY q AS SELECT a FROM S"


@pytest.fixture
def taking(service: LiveService) -> LiveService:
    assert service.http.post("/streams", content=S).status_code == 201
    return service


def test_rows_come_as_json_json_lines_or_arrow(taking: LiveService) -> None:
    http = taking.http
    assert http.post("/streams/s/tuples", json=[{"ts": 1, "a": 1}]).json() == {
        "accepted": 1,
        "late": 0,
        "rejected": 0,
        "repeated": False,
        "reason": None,
        "row": None,
    }
    http.post("/streams/S/tuples", json={"ts": 2, "a": 2})
    lines = '{"ts": 3, "a": 3}\n\n{"ts": 4, "a": 4}\n'
    http.post("/streams/S/tuples", content=lines, headers={"content-type": NDJSON})
    table = pa.table({"ts": [5, 6], "a": [5, 6]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body = sink.getvalue().to_pybytes()
    answer = http.post("/streams/S/tuples", content=body, headers={"content-type": ARROW})
    assert answer.json()["accepted"] == 2
    http.post("/streams/S/finish")
    taking.site.settle()
    assert [row for *_, row in said(taking.site, "q")] == [1, 2, 3, 4, 5, 6]


def test_a_repeated_batch_counts_once(taking: LiveService) -> None:
    first, second = (
        taking.http.post("/streams/S/tuples?batch_id=b1", json=[{"ts": 1, "a": 1}]).json()
        for _ in range(2)
    )
    assert (first["accepted"], second["accepted"], second["repeated"]) == (1, 0, True)
    assert taking.http.get("/streams/S").json()["arrived"] == 1


def test_a_poisoned_row_is_set_aside_and_the_rest_goes_on(taking: LiveService) -> None:
    rows = [{"ts": 1, "a": 1}, {"ts": 2, "a": "x"}, {"a": 3}, {"ts": 4, "a": 4}]
    answer = taking.http.post("/streams/S/tuples", json=rows).json()
    assert (answer["accepted"], answer["rejected"]) == (2, 2)
    rejects = taking.http.get("/streams/S/rejects").text.splitlines()
    assert [json.loads(line)["reason"] for line in rejects] == [
        "a: 'x' is not a valid INTEGER",
        "ts: the timestamp is missing",
    ]


def test_late_rows_are_kept_aside(taking: LiveService) -> None:
    taking.http.post("/streams/S/tuples", json=[{"ts": 9, "a": 1}, {"ts": 3, "a": 2}])
    assert taking.http.get("/streams/S").json()["late"] == 1
    assert json.loads(taking.http.get("/streams/S/late").text)["row"]["a"] == 2


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"[1]", "application/json", 422),
        (b"{", "application/json", 422),
        (b'[{"x": 1}]', "application/json", 200),  # a row without a timestamp is poisoned
        (b"nothing", ARROW, 422),
        (b"a,b", "text/csv", 415),
    ],
)
def test_what_is_no_batch_is_refused(
    taking: LiveService, body: bytes, content_type: str, status: int
) -> None:
    headers = {"content-type": content_type}
    answer = taking.http.post("/streams/S/tuples", content=body, headers=headers)
    assert answer.status_code == status


def test_an_arrow_batch_without_a_column_is_refused(taking: LiveService) -> None:
    table = pa.table({"ts": [5]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    answer = taking.http.post(
        "/streams/S/tuples",
        content=sink.getvalue().to_pybytes(),
        headers={"content-type": ARROW},
    )
    assert answer.status_code == 422
    assert "has no column a" in answer.json()["detail"]


def test_a_body_that_is_too_large_is_refused(
    taking: LiveService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.api.bodies.LARGEST_BODY", 100)
    answer = taking.http.post("/streams/S/tuples", content=b" " * 101)
    assert answer.status_code == 413


def test_heartbeats_are_instants_or_dates(service: LiveService) -> None:
    service.http.post(
        "/streams",
        content="CREATE STREAM D (a INTEGER) TIMESTAMP BY at TIMESTAMP RESOLUTION 1 SECOND",
    )
    http = service.http
    assert http.post("/streams/D/heartbeat", json={"at": "1970-01-02T00:00:00Z"}).status_code == 204
    assert http.get("/streams/D").json()["watermark"] == "1970-01-02 00:00:00"
    assert http.post("/streams/D/heartbeat", json={"at": 86_401}).status_code == 204
    assert http.get("/streams/D").json()["watermark"] == "1970-01-02 00:00:01"
    assert http.post("/streams/D/heartbeat", json={"at": "soon"}).status_code == 422
    assert http.post("/streams/D/heartbeat", json={}).status_code == 422


def test_the_engine_that_is_behind_says_when_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.api.routes.streams.PATIENCE_S", 0.05)
    live = LiveService(tmp_path / "slow", largest_backlog=2)
    try:
        live.http.post("/streams", content=S)
        live.site.settle()
        monkeypatch.setattr(live.site.engine, "tick_only", lambda **_: None)
        rows = [{"ts": i, "a": i} for i in range(3)]
        assert live.http.post("/streams/S/tuples", json=rows).status_code == 200
        answer = live.http.post("/streams/S/tuples", json=rows)
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "1"
        assert "3 tuples wait" in answer.json()["detail"]
        assert live.http.get("/streams/S").json()["backlog"] == 3
    finally:
        live.close()


def test_a_stream_in_use_is_not_dropped(taking: LiveService) -> None:
    answer = taking.http.delete("/streams/S")
    assert answer.status_code == 422
    assert "is still used by query q" in answer.json()["detail"]


def test_pushing_to_a_stream_that_has_a_source_is_a_conflict(service: LiveService) -> None:
    service.http.post(
        "/streams",
        content="CREATE STREAM Bid (itemID BIGINT) TIMESTAMP BY timestamp TIMESTAMP "
        "FROM 'generator:auctions/Bid' OPTIONS (rate '1')",
    )
    answer = service.http.post("/streams/Bid/tuples", json=[])
    assert answer.status_code == 409


def test_a_source_that_is_not_there_is_a_mistake_with_its_place(service: LiveService) -> None:
    text = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts;\nCREATE STREAM T (a INTEGER)\n"
    answer = service.http.post("/streams", content=text + "TIMESTAMP BY ts FROM 'nothing.csv'")
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["line"], error["column"]) == (2, 15)
    assert "there is no file" in error["message"]
    assert service.http.get("/streams").json() == []


def test_decimals_keep_their_digits(service: LiveService) -> None:
    service.http.post(
        "/streams", content="CREATE STREAM M (x DECIMAL(10, 2)) TIMESTAMP BY ts; SELECT x FROM M"
    )
    service.http.post("/streams/M/tuples", json=[{"ts": 1, "x": 0.1}, {"ts": 2, "x": "12.34"}])
    service.http.post("/streams/M/finish")
    service.site.settle()
    assert [row for *_, row in said(service.site, "q1")] == [Decimal("0.10"), Decimal("12.34")]


def test_frames_go_in_as_they_are(taking: LiveService) -> None:
    taking.site.push("S", pl.DataFrame({"TS": [1], "A": [1]}))
    assert taking.http.get("/streams/S").json()["arrived"] == 1


def test_a_line_that_is_no_object_is_rejected_with_its_number_and_the_others_count(
    service: LiveService,
) -> None:
    service.http.post("/streams", content="CREATE STREAM L (a INTEGER) TIMESTAMP BY ts")
    lines = '{"ts":1,"a":1}\n\nnot json\n{"ts":2,"a":"x"}\n[1]\n{"ts":3,"a":3}\n'
    answer = service.http.post(
        "/streams/L/tuples", content=lines, headers={"content-type": "application/x-ndjson"}
    ).json()
    assert (answer["accepted"], answer["rejected"]) == (2, 3)
    assert answer["reason"] == "not a JSON object: 'not json'"
    assert answer["line"] == 3
    rejects = service.http.get("/streams/L/rejects").text
    assert rejects.count("\n") == 3
    assert "is not a valid INTEGER" in rejects


def test_a_push_to_a_finished_stream_is_an_error_but_for_a_repeated_one(
    service: LiveService,
) -> None:
    service.http.post("/streams", content="CREATE STREAM L (a INTEGER) TIMESTAMP BY ts")
    path, row = "/streams/L/tuples", [{"ts": 1, "a": 1}]
    assert service.http.post(path, params={"batch_id": "b"}, json=row).json()["accepted"] == 1
    service.http.post("/streams/L/finish")
    answer = service.http.post(path, json=row)
    assert answer.status_code == 409
    assert answer.json()["detail"] == "L was finished; drop and re-create it to push again"
    assert service.http.post(path, params={"batch_id": "b"}, json=row).json()["repeated"]
