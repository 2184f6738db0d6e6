"""What `thalweg doctor --store` says of stores that can be used, and of those that can't."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from tests.engine.s3_server import BUCKET, VERSITYGW, S3Server, credentials, proxy

from thalweg.engine import store_checks
from thalweg.engine.failures import Unavailable
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.state.remote.objects import Objects, objects_at
from thalweg.engine.store_checks import check_store

needs_s3 = pytest.mark.skipif(not VERSITYGW.exists(), reason="no S3 server: `make s3` builds one")


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3") / "data")
    server.wait()
    yield server
    server.stop()


@pytest.fixture
def keys(server, monkeypatch) -> Iterator[pytest.MonkeyPatch]:
    for name, value in credentials(server.port).items():
        monkeypatch.setenv(name, value)
    yield monkeypatch
    objects_at.cache_clear()


def verdicts(url: str) -> dict[str, str]:
    return {c.what: c.verdict for c in check_store(url)}


GOOD = {"store": "ok", "conditional put": "ok", "put and get": "ok"}


def test_memory_does_all_that_is_needed():
    assert verdicts("memory:///") == GOOD


@needs_s3
def test_a_bucket_does_and_nothing_stays_in_it(keys):
    url = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    found = check_store(url)
    assert [c.verdict != "failed" for c in found] == [True] * 3
    assert "ms" in found[2].found
    assert Objects(url).keys("") == []


@needs_s3
def test_a_data_directory_in_it_is_told_and_not_touched(keys, tmp_path):
    url = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    engine = SharedEngine(tmp_path, objects=url)
    before = Objects(url).keys("")
    assert "holds a data directory" in check_store(url)[0].found
    assert Objects(url).keys("") == before
    engine.close()  # it has not been taken over: its last transaction counts


@needs_s3
@pytest.mark.parametrize(
    ("variable", "value", "advice"),
    [
        ("AWS_ACCESS_KEY_ID", "nobody", "AWS_ACCESS_KEY_ID"),
        ("AWS_SECRET_ACCESS_KEY", "guessed", "AWS_SECRET_ACCESS_KEY"),
        ("AWS_ENDPOINT", "http://127.0.0.1:9", "AWS_ENDPOINT"),
    ],
)
def test_what_can_not_be_reached_says_where_to_look(keys, variable, value, advice):
    keys.setenv(variable, value)
    (found,) = check_store(f"s3://{BUCKET}/x")
    assert (found.what, found.verdict) == ("store", "failed")
    assert advice in found.advice


def test_how_long_a_request_took_is_not_taken_for_the_servers_answer(monkeypatch):
    def unreachable(*_):
        raise Unavailable("GET http://127.0.0.1:9/b in 403.404ms - HTTP error: no connection")

    monkeypatch.setattr(Objects, "keys", unreachable)
    (found,) = check_store("memory:///")
    assert "AWS_ENDPOINT" in found.advice


@needs_s3
def test_a_bucket_that_is_not_there_is_told(keys):
    (found,) = check_store("s3://nowhere/x")
    assert "no such bucket" in found.advice


@needs_s3
def test_a_server_that_is_always_busy_is_told(keys, server):
    with proxy(server.port, lambda _: "503") as port:
        keys.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{port}")
        (found,) = check_store(f"s3://{BUCKET}/x")
    assert (found.what, found.verdict) == ("store", "failed")


class Overwriting(Objects):
    """A store that takes no notice of If-None-Match."""

    def create(self, key: str, content: bytes) -> None:
        self.put(key, content)


def test_a_store_that_replaces_objects_is_refused(monkeypatch):
    monkeypatch.setattr(store_checks, "Objects", Overwriting)
    (found,) = [c for c in check_store("memory:///") if c.verdict == "failed"]
    assert found.what == "conditional put"
    assert "If-None-Match" in found.advice


class Racing(Objects):
    """A store that looks first and puts then: right for one after the other, wrong for two."""

    def create(self, key: str, content: bytes) -> None:
        if "owner-" in key:
            self.put(key, content)
        else:
            super().create(key, content)


def test_a_store_that_looks_first_and_puts_then_is_refused(monkeypatch):
    monkeypatch.setattr(store_checks, "Objects", Racing)
    (found,) = [c for c in check_store("memory:///") if c.verdict == "failed"]
    assert "4 of 4" in found.found


class Forgetful(Objects):
    def get(self, key: str) -> bytes:
        return super().get(key)[:-1]


def test_a_store_that_changes_what_it_keeps_is_refused(monkeypatch):
    monkeypatch.setattr(store_checks, "Objects", Forgetful)
    assert verdicts("memory:///")["put and get"] == "failed"


def test_a_slow_store_is_a_warning(monkeypatch):
    monkeypatch.setattr(store_checks, "_SLOW_S", 0.0)
    (found,) = [c for c in check_store("memory:///") if c.verdict == "warning"]
    assert "nearer" in found.advice
