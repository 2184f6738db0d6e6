"""`thalweg dev` as a process of its own: started, used, killed, started again."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import polars as pl
import pytest
from tests.engine.site.conftest import said

from thalweg.cli.client import Service
from thalweg.cli.follow import follow_results
from thalweg.cql import compile_script
from thalweg.engine.site import IN_PROCESS, open_site

SCRIPT = """
CREATE STREAM S (k INTEGER, v INTEGER) TIMESTAMP BY ts;
CREATE STREAM T (k INTEGER) TIMESTAMP BY ts;
CREATE QUERY joined AS SELECT S.k, S.v FROM S [Range 5], T [Range 3] WHERE S.k = T.k;
CREATE QUERY counted AS SELECT k, COUNT(*) AS n, SUM(v) AS sum FROM S [Range 20] GROUP BY k;
"""


class Dev:
    """The service in a process; the same port and folder each time it is started."""

    def __init__(self, folder: Path, master: str = IN_PROCESS) -> None:
        self.folder, self.master = folder, master
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[str] | None = None

    def start(self, timeout_s: float = 150) -> "Dev":
        command = [sys.executable, "-m", "thalweg.cli", "dev", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, "--data-dir", str(self.folder), "--master", self.master, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        )
        deadline = time.monotonic() + timeout_s
        while not self._answers():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return self

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", trust_env=False, timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def end(self, how: signal.Signals) -> tuple[int, str, str]:
        assert self.process is not None
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=120)
        code = self.process.returncode
        self.process = None
        return code, out, err

    def post(self, path: str, **options: object) -> httpx.Response:
        """With patience: the service may be on its way down or up."""
        for _ in range(600):
            try:
                answer = httpx.post(self.url + path, trust_env=False, timeout=120, **options)  # type: ignore[arg-type]
                answer.raise_for_status()
                return answer
            except httpx.TransportError:
                time.sleep(0.1)
        raise AssertionError("the service never came back")


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Callable[..., Dev]]:
    made: list[Dev] = []

    def make(master: str = IN_PROCESS) -> Dev:
        made.append(Dev(tmp_path / "data", master))
        return made[-1]

    yield make
    for each in made:
        if each.process is not None:
            each.end(signal.SIGKILL)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_is_and_stops_quietly(
    dev: Callable[..., Dev], how: signal.Signals
) -> None:
    service = dev().start()
    service.post("/queries", content=SCRIPT)
    code, out, err = service.end(how)
    assert code == 0
    assert json.loads(out) == {"url": service.url, "data_dir": str(service.folder)}
    assert "Traceback" not in err
    assert f"Thalweg is at {service.url}" in err


def test_a_second_one_on_the_folder_or_the_port_is_refused(dev: Callable[..., Dev]) -> None:
    first = dev().start()
    command = [sys.executable, "-m", "thalweg.cli", "dev", "--master", IN_PROCESS]
    other = [*command, "--port", "0", "--data-dir", str(first.folder)]
    done = subprocess.run(other, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert "is in use by process" in done.stderr
    other = [*command, "--port", str(first.port), "--data-dir", str(first.folder / "x")]
    done = subprocess.run(other, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert "--port" in done.stderr


def batches(count: int) -> list[tuple[str, list[dict[str, int]]]]:
    made: list[tuple[str, list[dict[str, int]]]] = []
    for i in range(count):
        made.append(("S", [{"ts": i, "k": i % 7, "v": i}, {"ts": i, "k": i % 3, "v": -i}]))
        made.append(("T", [{"ts": i, "k": i % 5}]))
    return made


def expected(folder: Path, count: int) -> dict[str, list[tuple]]:
    """What a site says that nobody kills."""
    site = open_site(folder, compile_script, master=IN_PROCESS)
    site.execute(SCRIPT)
    with site.gate.between_ticks():
        for stream, rows in batches(count):
            site.push(stream, pl.DataFrame(rows))
    site.settle()
    found = {q: said(site, q) for q in ("joined", "counted")}
    site.close()
    return found


def survive(dev: Dev, folder: Path, count: int, kills: list[int]) -> None:
    """Push, with kill -9 on the way, while a client follows: it sees what it would have anyway."""
    dev.start()
    dev.post("/queries", content=SCRIPT)
    wanted = expected(folder, count)
    lines: dict[str, list[str]] = {"joined": [], "counted": []}

    def follow(query: str) -> None:
        with Service(dev.url) as service:
            for _, line in follow_results(service, query, None, 120):
                if line is not None:
                    lines[query].append(line)
                if len(lines[query]) >= len(wanted[query]):
                    return

    followers = [threading.Thread(target=follow, args=(q,), daemon=True) for q in lines]
    for follower in followers:
        follower.start()
    for number, (stream, rows) in enumerate(batches(count)):
        if number in kills:
            assert dev.process is not None
            dev.end(signal.SIGKILL)
            dev.start()
        dev.post(f"/streams/{stream}/tuples?batch_id={number}", json=rows)
        if number - 1 in kills:  # was the last one taken? only the batch id knows
            again = dev.post(f"/streams/{stream}/tuples?batch_id={number}", json=rows)
            assert again.json()["repeated"]
    for follower in followers:
        follower.join(120)
        assert not follower.is_alive()
    for query, found in lines.items():
        changes = [json.loads(line) for line in found]
        assert [(c["ts"], c["op"], *c["row"].values()) for c in changes] == wanted[query]
        assert len({c["id"] for c in changes}) == len(changes)


@pytest.mark.timeout(300)
def test_nothing_is_lost_or_doubled_by_kill_9(dev: Callable[..., Dev], tmp_path: Path) -> None:
    survive(dev(), tmp_path / "calm", 60, [3, 40, 41])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nor_on_spark(dev: Callable[..., Dev], tmp_path: Path) -> None:
    survive(dev("local[2]"), tmp_path / "calm", 20, [15])
