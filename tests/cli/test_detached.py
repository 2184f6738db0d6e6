"""dev --detach and --stop; commands that wait for a service that is starting."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from thalweg.cli.client import Service


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def thalweg(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "thalweg.cli", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
        timeout=200,
    )


def is_gone(pid: int) -> bool:
    for _ in range(200):
        try:
            os.kill(pid, signal.SIG_DFL)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_a_service_is_started_in_the_background_and_stopped(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    port = str(free_port())
    arguments = ["--data-dir", data, "--master", "in-process", "--port", port]
    started = thalweg("dev", "--detach", "--json", *arguments)
    assert started.returncode == 0, started.stderr
    said = json.loads(started.stdout)
    try:
        assert thalweg("ps", "--url", said["url"]).returncode == 0
        second = thalweg("dev", "--detach", *arguments)
        assert second.returncode == 2
        assert f"it runs already, as process {said['pid']}: `thalweg dev --stop" in second.stderr
        elsewhere = thalweg("dev", "--detach", *arguments[:-1], str(free_port()))
        assert elsewhere.returncode == 2  # the folder is taken, as the port was
        assert f"process {said['pid']}" in elsewhere.stderr
    finally:
        stopped = thalweg("dev", "--stop", "--data-dir", data)
    assert stopped.returncode == 0, stopped.stderr
    assert is_gone(said["pid"])
    assert "nothing to stop" in thalweg("dev", "--stop", "--data-dir", data).stderr


def test_commands_wait_for_a_service_that_is_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THALWEG_WAIT_S", "30")
    port = free_port()

    def serve() -> None:
        with socket.create_server(("127.0.0.1", port)) as server:
            connection, _ = server.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    later = threading.Timer(0.5, serve)
    later.start()
    with Service(f"http://127.0.0.1:{port}") as service:
        assert service.get("/health") == {}
    later.join()


def test_the_command_that_stops_it_is_told_whole(tmp_path: Path) -> None:
    data = tmp_path / "my data"
    arguments = ["--master", "in-process", "--port", str(free_port()), "--data-dir", str(data)]
    started = thalweg("dev", "--detach", *arguments)
    stopped = thalweg("dev", "--stop", "--data-dir", str(data))
    assert f"`thalweg dev --stop --data-dir '{data}'`" in started.stderr
    assert stopped.returncode == 0, stopped.stderr
