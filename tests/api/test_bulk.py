import pytest
from tests.api.conftest import LiveService

S = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts"


def texts(*cql: str) -> dict[str, object]:
    return {"texts": [{"cql": text, "name": f"{i}.cql"} for i, text in enumerate(cql)]}


def test_every_text_has_its_result(service: LiveService) -> None:
    body = texts(S, "SELECT a FROM S; SELECT b FROM S", "DROP QUERY q1; SELECT a FROM S")
    answer = service.http.post("/queries/bulk", json=body)
    assert answer.status_code == 200
    found = answer.json()
    assert (found["done"], found["failed"]) == (4, 1)
    first, second, third = found["results"]
    assert (first["created"], first["queries"]) == (["S"], [])
    assert second["queries"] == ["q1"]
    assert second["errors"][0]["text"].startswith("1.cql:1:25: error: there is no column")
    assert (third["dropped"], third["queries"]) == (["q1"], ["q3"])
    assert [q["name"] for q in service.http.get("/queries").json()] == ["q3"]


@pytest.mark.parametrize(
    "columns",
    [
        "(a INTEGR) TIMESTAMP BY ts",
        "(a INTEGER",
        "(a INTEGER, a INTEGER) TIMESTAMP BY ts",
        "(a INTEGER) TIMESTAMP BY ts FROM 'no.csv'",  # shows when the source is opened
    ],
)
def test_what_only_fails_because_of_an_earlier_statement_says_so(
    service: LiveService, columns: str
) -> None:
    cql = f"CREATE STREAM IF NOT EXISTS New {columns}; CREATE QUERY q AS SELECT a FROM New [Now]"
    (result,) = service.http.post("/queries/bulk", json=texts(cql)).json()["results"]
    first, second = result["errors"]
    assert "see above" not in (first["hint"] or "")
    assert second["message"] == 'there is no stream, relation or view "New"'
    assert second["hint"] == "the statement that makes it was not taken, either: see above"


@pytest.mark.parametrize(
    "cql",
    [
        "SELECT a FROM New [Now]; CREATE STREAM New (a INTEGER) TIMESTAMP BY ts",
        "CREATE STREAM New (a INTEGER) TIMESTAMP BY ts; DROP STREAM New; SELECT a FROM New [Now]",
        "CREATE STREAM Newer (a INTEGR) TIMESTAMP BY ts; SELECT a FROM New [Now]",
    ],
)
def test_what_was_not_made_before_is_just_unknown(service: LiveService, cql: str) -> None:
    (result,) = service.http.post("/queries/bulk", json=texts(cql)).json()["results"]
    assert "see above" not in (result["errors"][-1]["hint"] or "")


def test_places_are_those_of_the_whole_text(service: LiveService) -> None:
    text = {"cql": "SELECT 1\nFROM S", "name": "f", "first_line": 41}
    found = service.http.post("/queries/bulk", json={"texts": [text]}).json()
    (error,) = found["results"][0]["errors"]
    assert error["line"] == 42
    assert error["text"].startswith("f:42:6: error: ")
    assert "  FROM S\n       ^" in error["text"]


def test_what_was_submitted_stands_after_a_restart(service: LiveService) -> None:
    body = texts(S, *(f"CREATE QUERY n{i} AS SELECT a FROM S WHERE a > {i}" for i in range(50)))
    assert service.http.post("/queries/bulk", json=body).json()["done"] == 51
    script = service.site.book.script()
    assert script.startswith(S)
    assert [f"n{i} " in script for i in range(50)] == [True] * 50


def test_a_body_that_is_none_is_refused(service: LiveService) -> None:
    for body in ({"texts": [{"cql": 1, "name": "x"}]}, {"cql": "SELECT 1"}):
        answer = service.http.post("/queries/bulk", json=body)
        assert answer.status_code == 422
        assert "send texts as JSON" in answer.json()["detail"]
