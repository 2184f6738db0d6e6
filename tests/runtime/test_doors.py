"""The doors themselves: tests rely on them, so they are tested."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.doors import Doors
from tests.runtime.links import Link

# What a node does that connects: says something, and prints what comes back.
SAYS = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20) as connection:
    try:
        connection.sendall(b"hello")
        print(connection.recv(100).decode())
    except ConnectionError:
        print()
"""


@pytest.fixture
def doors(tmp_path: Path) -> Iterator[tuple[Doors, tuple[str, int]]]:
    """Before a port of n2, behind which somebody sends back what comes; and the door's address."""
    made = Doors(tmp_path)
    options = made.options("n2")
    made.options("n1")
    port = int(options[options.index("--data-port") + 1])
    server = socket.create_server(("127.0.0.1", port))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.sendall(connection.recv(100))

    threading.Thread(target=serve, daemon=True).start()
    yield made, (options[options.index("--address") + 1], port)
    made.close()
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def said_by(folder: Path, name: str, door: tuple[str, int]) -> str:
    command = [sys.executable, "-c", SAYS, *map(str, door), "--data-dir", str(folder / name)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_link_is_between_two_nodes_and_users_do_not_pass(
    doors: tuple[Doors, tuple[str, int]], tmp_path: Path
) -> None:
    made, door = doors
    assert said_by(tmp_path, "n1", door) == "hello"
    made.cut_off("n1", Link.refuse)
    assert said_by(tmp_path, "n1", door) == ""
    assert said_by(tmp_path, "n3", door) == "hello", "another node's link is whole"
    made.heal()
    assert said_by(tmp_path, "n1", door) == "hello"
    assert set(made.links) == {("n1", "n2"), ("n3", "n2")}
    with socket.create_connection(door, timeout=20) as stranger:
        assert stranger.recv(1) == b"", "nobody comes through unknown"


def test_those_who_have_never_talked_are_apart_too(
    doors: tuple[Doors, tuple[str, int]], tmp_path: Path
) -> None:
    made, door = doors
    made.part(["n1"], ["n2"], Link.refuse)
    assert said_by(tmp_path, "n1", door) == ""
