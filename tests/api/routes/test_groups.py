from tests.api.conftest import LiveService

SCRIPT = """
CREATE STREAM S (a INTEGER) TIMESTAMP BY ts;
CREATE QUERY one AS SELECT a FROM S [Range 5] WHERE a = 1;
CREATE QUERY two AS SELECT a FROM S [Range 9] WHERE a = 2
"""


def begin(service: LiveService) -> None:
    service.http.post("/queries", content=SCRIPT).raise_for_status()
    rows = [{"ts": ts, "a": 1} for ts in range(3)]
    service.http.post("/streams/S/tuples", json=rows).raise_for_status()
    service.site.settle()


def test_groups_are_listed_and_shown_by_name_or_number(service: LiveService) -> None:
    assert service.http.get("/groups").json() == []
    begin(service)
    (group,) = service.http.get("/groups").json()
    assert (group["name"], group["members"]) == ("group/1", 2)
    for name in ("1", "group/1"):
        assert service.http.get(f"/groups/{name}").json()["name"] == "group/1"
    text = service.http.get("/groups", params={"format": "text"}).text
    assert text.startswith("group/1 answers 2 queries\n│  SELECT a\n")
    assert service.http.get("/groups/9").status_code == 404


def test_a_query_says_by_which_group_it_is_answered(service: LiveService) -> None:
    begin(service)
    found = service.http.get("/queries/one").json()
    assert (found["group"], found["rows"]) == ("group/1", None)
    form = {"form": "shared", "format": "json"}
    assert service.http.get("/queries/one/explain", params=form).json()["group"]["members"] == 2
    assert service.http.post("/explain", params=form, content="SELECT a FROM S").status_code == 409


def test_two_queries_are_told_apart(service: LiveService) -> None:
    begin(service)
    assert service.http.get("/queries/one/why/two").text.startswith("They are in one group")
    found = service.http.get("/queries/one/why/two", params={"format": "json"}).json()
    assert found["groups"] == ["group/1", "group/1"]
    assert service.http.get("/queries/one/why/three").status_code == 404
