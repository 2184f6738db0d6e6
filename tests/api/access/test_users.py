"""Every request has a user, and users have roles, definitions of their own, and limits."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.api.access.serving import Known, serving

from thalweg.api.access.middleware import role_for
from thalweg.runtime.trust import Limits, Role

BIDS = "CREATE STREAM Bids (item BIGINT) TIMESTAMP BY ts BIGINT"
DEAR = "CREATE QUERY dear AS SELECT * FROM Bids [Now] WHERE item > 5"


class Served:
    def __init__(self, url: str, known: Known) -> None:
        self.url, self.known = url, known
        self._client = httpx.Client(base_url=url, timeout=120, trust_env=False)

    def ask(self, who: str | None, method: str, path: str, **options: Any) -> httpx.Response:
        headers = self.known.headers(who) if who is not None else {}
        return self._client.request(method, path, headers=headers, **options)

    def cql(self, who: str, text: str) -> int:
        return self.ask(who, "POST", "/queries", json={"cql": text}).status_code


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    known = Known(tmp_path / "users.json")
    for name in ("anna", "ben"):
        known.add(name)
    known.add("rita", Role.READ)
    known.add("olga", Role.OPERATE)
    with serving(tmp_path / "data", known.file) as url:
        yield Served(url, known)


def test_without_a_good_token_nothing_is_answered(served: Served) -> None:
    hour = dt.timedelta(hours=1)
    served.known.add("old", expires=dt.datetime.now(dt.UTC) - hour)
    wrong = served.known.tokens["anna"][:-1] + "x"
    cases = {
        "a token is needed": {},
        "not known": {"authorization": f"Bearer {wrong}"},
        "expired at": served.known.headers("old"),
        "token is needed": {"authorization": "Basic YW5uYTp4"},
    }
    for told, headers in cases.items():
        for path in ("/queries", "/health", "/docs", "/openapi.json", "/nothing"):
            answer = httpx.get(served.url + path, headers=headers, trust_env=False)
            assert answer.status_code == 401
            assert told in answer.json()["detail"]
            assert answer.headers["www-authenticate"].startswith("Bearer")
    assert served.ask("rita", "GET", "/queries").json() == []


def test_roles_include_each_other(served: Served) -> None:
    assert served.cql("rita", BIDS) == 403
    assert served.cql("anna", f"{BIDS}; {DEAR}") == 201
    assert served.ask("rita", "GET", "/queries/dear").status_code == 200
    assert served.ask("rita", "POST", "/explain", content="SELECT * FROM Bids").status_code == 200
    for method, path in (("DELETE", "/queries/dear"), ("POST", "/streams/Bids/tuples")):
        assert served.ask("rita", method, path).status_code == 403
    assert served.ask("anna", "GET", "/backup").status_code == 403
    assert served.ask("olga", "GET", "/backup").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "role"),
    [
        ("GET", "/backup/", Role.OPERATE),
        ("POST", "/network/leave", Role.OPERATE),
        ("GET", "/network", Role.READ),
        ("POST", "/query", Role.READ),
        ("POST", "/queries", Role.SUBMIT),
        ("PATCH", "/anything", Role.SUBMIT),
    ],
)
def test_what_a_request_needs(method: str, path: str, role: Role) -> None:
    assert role_for(method, path) is role


def test_what_another_has_made_is_not_touched(served: Served, tmp_path: Path) -> None:
    assert served.cql("anna", f"{BIDS}; {DEAR}; CREATE VIEW V AS SELECT * FROM Bids [Now]") == 201
    before = served.ask("rita", "GET", "/queries/dear").json()["text"]
    for text in (
        "DROP QUERY dear",
        "CREATE OR REPLACE QUERY dear AS SELECT * FROM Bids [Now]",
        "ALTER STREAM Bids ADD COLUMN x BIGINT",
        "DROP VIEW V",
        "CREATE OR REPLACE VIEW V AS SELECT item FROM Bids [Now] WHERE item = 1",
        f"CREATE SINK s FROM dear INTO 'jsonl:{tmp_path}/out.jsonl'",
        "CREATE QUERY mine AS SELECT * FROM Bids [Now]; DROP QUERY dear",
    ):
        assert served.cql("ben", text) == 403, text
    sink = {"target": f"jsonl:{tmp_path}/out.jsonl"}
    assert served.ask("ben", "DELETE", "/queries/dear").status_code == 403
    assert served.ask("ben", "POST", "/queries/dear/sinks", json=sink).status_code == 403
    assert served.ask("ben", "POST", "/streams/Bids/finish").status_code == 403
    files = {"texts": [{"cql": BIDS, "name": "a.cql"}]}  # which would drop all else
    assert served.ask("ben", "POST", "/apply", json=files).status_code == 403
    assert served.ask("rita", "GET", "/queries/dear").json()["text"] == before
    assert [q["name"] for q in served.ask("rita", "GET", "/queries").json()] == ["dear"]

    assert served.cql("ben", "CREATE QUERY seen AS SELECT * FROM V") == 201
    rows = [{"ts": 1, "item": 7}]
    assert served.ask("ben", "POST", "/streams/Bids/tuples", json=rows).status_code == 200
    # Its owner may replace a view on which another's query stands.
    view = "CREATE OR REPLACE VIEW V AS SELECT * FROM Bids [Now] WHERE item = 1"
    assert served.cql("anna", view) == 201
    assert served.cql("anna", "DROP QUERY seen") == 403
    assert served.cql("olga", "DROP QUERY seen") == 201
    made = served.ask("anna", "POST", "/queries/dear/sinks", json=sink)
    assert made.status_code == 201
    path = f"/queries/dear/sinks/{made.json()['name']}"
    assert served.ask("ben", "DELETE", path).status_code == 403
    assert served.ask("anna", "DELETE", path).status_code == 204


def test_owners_are_known_after_a_restart_and_what_is_replaced_stays_theirs(tmp_path: Path) -> None:
    known = Known(tmp_path / "users.json")
    known.add("anna")
    known.add("ben")
    known.add("olga", Role.OPERATE)
    with serving(tmp_path / "data", known.file) as url:
        served = Served(url, known)
        assert served.cql("anna", f"{BIDS}; {DEAR}") == 201
        other = "CREATE OR REPLACE QUERY dear AS SELECT * FROM Bids [Now] WHERE item > 6"
        assert served.cql("olga", other) == 201
    with serving(tmp_path / "data", known.file) as url:
        served = Served(url, known)
        assert served.cql("ben", "DROP QUERY dear") == 403
        assert served.cql("anna", f"DROP QUERY dear; {DEAR}; DROP QUERY dear") == 201
        assert served.cql("ben", DEAR) == 201  # the name is free, and now his
        assert served.cql("anna", "DROP QUERY dear") == 403


def test_what_stood_before_there_were_users_is_the_operators(tmp_path: Path) -> None:
    from thalweg.cql import compile_script
    from thalweg.engine.site import IN_PROCESS, open_site

    site = open_site(tmp_path / "data", compile_script, master=IN_PROCESS)
    site.execute(f"{BIDS}; {DEAR}")
    site.close()
    known = Known(tmp_path / "users.json")
    known.add("anna")
    known.add("olga", Role.OPERATE)
    with serving(tmp_path / "data", known.file) as url:
        served = Served(url, known)
        assert served.cql("anna", "DROP QUERY dear") == 403
        assert served.cql("olga", "DROP QUERY dear") == 201


def test_standing_queries_are_limited(served: Served) -> None:
    served.known.add("carl", limits=Limits(queries=2))
    query = "CREATE QUERY {} AS SELECT * FROM Bids [Now]"
    assert served.cql("anna", f"{BIDS}; {DEAR}") == 201
    too_many = "; ".join(query.format(n) for n in "abc")
    assert served.cql("carl", too_many) == 403
    assert served.cql("carl", f"{query.format('a')}; {query.format('b')}") == 201
    refused = served.ask("carl", "POST", "/queries", json={"cql": query.format("c")})
    assert refused.status_code == 403
    assert "2 queries at once" in refused.json()["detail"]
    assert served.cql("carl", f"DROP QUERY a; {query.format('c')}") == 201
    replaced = "CREATE OR REPLACE QUERY b AS SELECT * FROM Bids [Now] WHERE item > 1"
    assert served.cql("carl", replaced) == 201
    texts = [{"cql": query.format(n), "name": n} for n in "de"]
    bulk = served.ask("carl", "POST", "/queries/bulk", json={"texts": texts}).json()
    assert (bulk["done"], bulk["failed"]) == (0, 2)
    assert "2 queries at once" in bulk["results"][0]["errors"][0]["text"]


def test_state_of_queries_is_limited(served: Served) -> None:
    served.known.add("emil", limits=Limits(state_bytes=100))
    assert served.cql("anna", BIDS) == 201
    # No group takes it, so that its state is its own.
    holds = "SELECT A.item FROM Bids [Rows 50] A, Bids [Rows 60] B WHERE A.item = B.item"
    assert served.cql("emil", f"CREATE QUERY one AS {holds}") == 201
    rows = [{"ts": n, "item": n} for n in range(50)]
    assert served.ask("anna", "POST", "/streams/Bids/tuples", json=rows).status_code == 200
    until = time.monotonic() + 120
    another = "CREATE QUERY two AS SELECT COUNT(*) AS n FROM Bids [Range 10]"
    while served.cql("emil", another) == 201:
        assert served.cql("emil", "DROP QUERY two") == 201
        assert time.monotonic() < until, "it holds nothing"
        time.sleep(0.2)
    refused = served.ask("emil", "POST", "/queries", json={"cql": another})
    assert refused.status_code == 403
    assert "bytes of state" in refused.json()["detail"]
    assert served.cql("emil", "DROP QUERY one") == 201
    assert served.cql("emil", another) == 201


def test_pushed_rows_are_limited(served: Served) -> None:
    served.known.add("dora", limits=Limits(rows_per_s=10))
    assert served.cql("anna", BIDS) == 201
    rows = [{"ts": 1, "item": n} for n in range(10)]
    push = ("POST", "/streams/Bids/tuples")
    assert served.ask("dora", *push, json=rows).status_code == 200
    refused = served.ask("dora", *push, json=rows)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) == 1
    values = ", ".join(f"(1, {n})" for n in range(10))
    assert served.cql("dora", f"INSERT INTO Bids (ts, item) VALUES {values}") == 429
    assert served.ask("anna", *push, json=rows).status_code == 200
    assert served.ask("rita", "GET", "/streams/Bids").json()["arrived"] == 20


def test_who_is_taken_out_is_out_at_once_also_of_results_that_go_on(served: Served) -> None:
    token = served.known.headers("anna")
    assert served.cql("anna", f"{BIDS}; {DEAR}") == 201
    url = f"{served.url}/queries/dear/results"
    with httpx.stream("GET", url, headers=token, trust_env=False, timeout=120) as answer:
        assert answer.status_code == 200
        served.known.remove("anna")
        assert served.ask("anna", "GET", "/queries").status_code == 401
        time.sleep(1.1)
        for n in range(2):  # it is looked at again with what is sent
            rows = [{"ts": n + 1, "item": 987654}]
            assert served.ask("ben", "POST", "/streams/Bids/tuples", json=rows).is_success
        assert "987654" not in "".join(answer.iter_text())


def test_a_users_file_that_cant_be_read_lets_nobody_in(served: Served) -> None:
    served.known.file.path.write_text("{")
    for who in (None, "olga"):
        answer = served.ask(who, "GET", "/queries")
        assert answer.status_code == 503
        assert str(served.known.file.path) not in answer.text
