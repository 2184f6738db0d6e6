"""The same on a real S3 server: with conditional puts, and with bad days."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from tests.engine.s3_server import BUCKET, VERSITYGW, S3Server, credentials, proxy
from tests.engine.shared.adapter import Collect

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.state.remote.book_log import Fenced
from thalweg.engine.shared.state.remote.objects import Objects, Taken, objects_at

pytestmark = pytest.mark.skipif(not VERSITYGW.exists(), reason="no S3 server: `make s3` builds one")

SCRIPT = """
CREATE STREAM A (k BIGINT, v BIGINT) TIMESTAMP BY ts BIGINT;
CREATE STREAM B (k BIGINT, w BIGINT) TIMESTAMP BY ts BIGINT;
CREATE QUERY q AS SELECT A.v, B.w FROM A [Range 50], B [Range 50] WHERE A.k = B.k;
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3") / "data")
    server.wait()
    yield server
    server.stop()


@pytest.fixture
def url(server, monkeypatch) -> Iterator[str]:
    for name, value in credentials(server.port).items():
        monkeypatch.setenv(name, value)
    yield f"s3://{BUCKET}/{uuid.uuid4().hex}"
    objects_at.cache_clear()  # its clients have this server's address


def opened(folder: Path, url: str, outlet: Collect) -> SharedEngine:
    script = compile_script(SCRIPT)
    engine = SharedEngine(folder, outlet=outlet, objects=url)
    for stream in script.catalog.streams():
        engine.add_stream(stream)
    engine.add_queries(script.queries)
    return engine


def feed(engine: SharedEngine, ts: int) -> None:
    for name, column in (("A", "v"), ("B", "w")):
        rows = pl.DataFrame({"k": [ts % 3], column: [ts], "ts": [ts]})
        assert engine.landing.push(engine.streams[name], rows, batch_id=f"{ts}").accepted == 1
    engine.run_to_end()


def expected(tmp_path: Path) -> list[object]:
    outlet = Collect()
    engine = opened(tmp_path / "local", "", outlet)
    for ts in range(0, 120, 10):
        feed(engine, ts)
    engine.close()
    return outlet.results["q"]


def test_only_one_creates_an_object(url):
    objects = Objects(url)
    objects.create("log/1", b"mine")
    objects.create("log/1", b"mine")  # once more, since the answer was lost
    with pytest.raises(Taken):
        objects.create("log/1", b"another's")
    assert objects.get("log/1") == b"mine"
    objects.put("a/b", b"x")
    assert objects.keys("a/") == ["a/b"]
    objects.delete(["a/b", "a/never"])
    assert objects.keys("a/") == []


def test_an_engine_goes_on_from_the_bucket_on_an_empty_machine(url, tmp_path):
    outlet = Collect()
    engines = [opened(tmp_path / "0", url, outlet)]
    for ts in range(0, 120, 10):
        if ts in (30, 70):
            engines.append(opened(tmp_path / str(ts), url, outlet))
        feed(engines[-1], ts)
    with pytest.raises(Fenced):
        feed(engines[0], 200)
    engines[-1].close()
    assert outlet.results["q"] == expected(tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_bad_days_of_the_server_do_not_show(url, server, tmp_path, monkeypatch, seed):
    rng = random.Random(f"s3 {seed}")
    met: list[str] = []

    def mishap(_: int) -> str:
        what = rng.choices(["", "503", "slow", "torn", "lost"], [20, 2, 1, 1, 2])[0]
        met.append(what)
        return what

    with proxy(server.port, mishap) as port:
        monkeypatch.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{port}")
        outlet = Collect()
        engine = opened(tmp_path / "a", url, outlet)
        for ts in range(0, 120, 10):
            if ts == 60:
                engine = opened(tmp_path / "b", url, outlet)
            feed(engine, ts)
        engine.close()
    assert outlet.results["q"] == expected(tmp_path)
    assert set(met) == {"", "503", "slow", "torn", "lost"}
