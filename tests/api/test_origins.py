"""A web page of another site may not change anything."""

import httpx
import pytest
from tests.api.conftest import LiveService

SCRIPT = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts"


def post(service: LiveService, **headers: str) -> httpx.Response:
    return service.http.post("/queries", content=SCRIPT, headers=headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://example.org"},
        {"origin": "null"},
        {"host": "example.org"},
        {"host": "example.org:7341", "origin": "http://example.org:7341"},
        {"origin": "http://127.0.0.1:1"},
    ],
)
def test_what_comes_from_elsewhere_changes_nothing(
    service: LiveService, headers: dict[str, str]
) -> None:
    answer = post(service, **headers)
    assert answer.status_code == 403
    assert answer.headers["content-type"] == "application/problem+json"
    assert service.http.delete("/streams/S", headers=headers).status_code == 403
    assert service.site.catalog.definitions == {}


def test_what_comes_from_here_is_taken(service: LiveService) -> None:
    port = service.url.rpartition(":")[2]
    assert post(service).status_code == 201
    own = service.url.removeprefix("http://")
    drop = {"host": own, "origin": f"http://{own}"}
    assert service.http.delete("/streams/S", headers=drop).status_code == 204
    assert post(service, host=f"localhost:{port}").status_code == 201


def test_reading_is_not_restricted(service: LiveService) -> None:
    found = service.http.get("/queries", headers={"origin": "https://example.org"})
    assert found.status_code == 200


def test_the_page_about_the_api_needs_nothing_from_elsewhere(service: LiveService) -> None:
    page = service.http.get("/docs").text
    assert "/streams/{name}/tuples" in page
    assert "<script" not in page
    assert "https://" not in page
