import json
from pathlib import Path

import httpx
from tests.api.conftest import LiveService

SCRIPT = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE QUERY q AS SELECT a FROM S [Range 2]"


def push(service: LiveService, *stamped: tuple[int, int]) -> None:
    rows = [{"ts": ts, "a": a} for ts, a in stamped]
    service.http.post("/streams/S/tuples", json=rows).raise_for_status()
    service.site.settle()


def test_a_script_is_submitted_as_text_or_as_json(service: LiveService) -> None:
    answer = service.http.post("/queries", content=SCRIPT)
    assert answer.status_code == 201
    assert answer.json() == {
        "queries": ["q"],
        "created": ["S", "q"],
        "dropped": [],
        "changes": [
            {"did": "created", "kind": "stream", "name": "S"},
            {"did": "created", "kind": "query", "name": "q"},
        ],
        "notes": [],
        "written": 0,
        "warnings": [],
        "notices": [],
    }
    answer = service.http.post("/queries", json={"cql": "SELECT a + 1 FROM S"})
    assert answer.json()["queries"] == ["q1"]
    assert [q["name"] for q in service.http.get("/queries").json()] == ["q", "q1"]


def test_a_mistake_is_a_problem_with_its_place_and_a_caret(service: LiveService) -> None:
    answer = service.http.post(
        "/queries", json={"cql": SCRIPT + ";\nSELECT b\nFROM S", "name": "f"}
    )
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    (error,) = problem["errors"]
    assert (error["line"], error["column"], error["length"]) == (2, 8, 1)
    assert error["text"] == 'f:2:8: error: there is no column "b" in S\n  SELECT b\n         ^'
    assert problem["detail"] == error["text"]
    assert service.http.get("/streams").json() == []


def test_warnings_come_with_the_answer(service: LiveService) -> None:
    answer = service.http.post(
        "/queries", content=SCRIPT + "; CREATE QUERY big AS SELECT L.a FROM S L, S R"
    )
    warning = answer.json()["warnings"][0]
    assert warning["severity"] == "warning"
    assert "^" in warning["text"]


def test_requests_that_can_not_be_read_are_problems(service: LiveService) -> None:
    http = service.http
    for answer, status in [
        (http.post("/queries", json={"sql": "x"}), 422),
        (http.post("/queries", content=b"{", headers={"content-type": "application/json"}), 422),
        (http.post("/queries", content=b"\xff\xfe"), 422),
        (http.get("/queries/nothing"), 404),
        (http.get("/queries/nothing/results"), 404),
        (http.delete("/queries/nothing"), 404),
        (http.get("/nowhere"), 404),
        (http.get("/queries/q/explain?form=magic"), 422),
    ]:
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == status


def test_results_can_be_asked_for_again_behind_what_one_has(service: LiveService) -> None:
    service.http.post("/queries", content=SCRIPT)
    push(service, (1, 10), (5, 20))
    first = service.http.get("/queries/q/results?format=json&limit=1").json()
    assert [(r["id"], r["ts"], r["op"], r["row"]) for r in first["rows"]] == [
        ("1.1.0", 1, "+", {"a": 10})
    ]
    push(service, (9, 30))
    rest = service.http.get(f"/queries/q/results?format=json&after={first['next']}").json()
    assert [(r["ts"], r["op"]) for r in rest["rows"]] == [(4, "-"), (5, "+"), (8, "-")]
    assert service.http.get(f"/queries/q/results?format=json&after={rest['next']}").json() == {
        "rows": [],
        "next": rest["next"],
        "complete_from": None,
    }
    lines = service.http.get("/queries/q/results?format=ndjson")
    assert [json.loads(line)["id"] for line in lines.text.splitlines()] == [
        r["id"] for r in first["rows"] + rest["rows"]
    ]
    assert lines.headers["thalweg-next"] == rest["next"]


def test_an_id_that_is_none_is_refused(service: LiveService) -> None:
    service.http.post("/queries", content=SCRIPT)
    answer = service.http.get("/queries/q/results?after=x")
    assert answer.status_code == 422
    assert "is not a result id" in answer.json()["detail"]


def test_a_query_is_stopped_and_gone(service: LiveService) -> None:
    service.http.post("/queries", content=SCRIPT)
    assert service.http.get("/queries/Q").json()["state"] == "waiting"
    assert service.http.delete("/queries/q").status_code == 204
    assert service.http.get("/queries").json() == []
    assert service.http.delete("/streams/S").status_code == 204


def test_queries_are_explained(service: LiveService) -> None:
    service.http.post("/queries", content=SCRIPT)
    assert service.http.get("/queries/q/explain").text.startswith("Project a\n")
    physical = service.http.get("/queries/q/explain?form=physical&format=json").json()
    assert physical["plan"]["operator"] == "Output"
    spark = service.http.post("/explain?form=spark", content="SELECT COUNT(*) AS n FROM S")
    assert "One Spark job per tick" in spark.text
    assert len(service.http.get("/queries").json()) == 1


def test_openapi_describes_every_route(service: LiveService) -> None:
    paths = service.http.get("/openapi.json").json()["paths"]
    assert {
        "/queries",
        "/queries/{name}",
        "/queries/{name}/results",
        "/queries/{name}/explain",
        "/streams",
        "/streams/{name}/tuples",
        "/streams/{name}/heartbeat",
        "/health",
        "/metrics",
    } <= paths.keys()
    assert "text/plain" in paths["/queries"]["post"]["requestBody"]["content"]
    assert service.http.get("/docs").status_code == 200
    assert httpx.get(service.url, trust_env=False).headers["location"] == "/docs"


def test_what_a_query_lacks_of_the_past_comes_with_the_answer(service: LiveService) -> None:
    service.http.post("/queries", content=SCRIPT)
    push(service, *((ts, 1) for ts in range(10)))
    late = "CREATE QUERY late AS SELECT a FROM S [Range 5]"
    (notice,) = service.http.post("/queries", content=late).json()["notices"]
    assert (notice["query"], notice["since"], notice["complete_from"]) == ("late", "6", "11")
    body = {"texts": [{"cql": late.replace("late", "later"), "name": "x"}]}
    (result,) = service.http.post("/queries/bulk", json=body).json()["results"]
    assert [n["query"] for n in result["notices"]] == ["later"]
    (status,) = (q for q in service.http.get("/queries").json() if q["name"] == "late")
    assert (status["state"], status["complete_from"]) == ("waiting", "11")


def test_the_content_is_what_a_result_holds_now(service: LiveService) -> None:
    service.http.post("/queries", content=SCRIPT)
    push(service, (1, 1), (2, 2), (3, 3), (5, 5))
    answer = service.http.get("/queries/q/content")
    assert answer.json() == {"at": "4", "columns": [["a", "INTEGER"]], "rows": [{"a": 2}, {"a": 3}]}
    assert service.http.get("/queries/nothing/content").status_code == 404


def test_a_select_is_answered_once(service: LiveService) -> None:
    service.http.post("/queries", content=SCRIPT)
    push(service, (1, 1), (2, 2), (3, 3), (5, 5))
    answer = service.http.post("/query", content="SELECT MAX(a) AS most FROM q")
    assert answer.json() == {"at": "4", "columns": [["most", "INTEGER"]], "rows": [{"most": 3}]}
    assert service.http.post("/query", content="SELECT b FROM q").status_code == 422
    refused = service.http.post("/query", content="DROP QUERY q")
    assert refused.status_code == 409
    assert "thalweg submit" in refused.json()["detail"]
    assert [q["name"] for q in service.http.get("/queries").json()] == ["q"]


def test_who_starts_in_the_middle_is_told_so(tmp_path: Path) -> None:
    service = LiveService(tmp_path / "data", retained_ticks=2)
    try:
        service.http.post("/queries", content=SCRIPT)
        for ts in range(8):
            push(service, (ts, ts))
        path = "/queries/q/results"
        told = service.http.get(path, params={"format": "json"}).json()
        assert told["complete_from"] == "5"
        assert min(row["ts"] for row in told["rows"]) >= 5
        lines = service.http.get(path, params={"format": "ndjson"})
        assert lines.headers["Thalweg-Complete-From"] == "5"
        further = service.http.get(path, params={"format": "json", "after": told["next"]})
        assert further.json()["complete_from"] is None
        with service.http.stream("GET", path) as answer:
            first = [line for line, _ in zip(answer.iter_lines(), range(6), strict=False)]
        assert "event: gap" in first
        assert 'data: {"complete_from": "5"}' in first
    finally:
        service.close()
