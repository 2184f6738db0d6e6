"""The relay itself: tests rely on it, so it is tested."""

import socket
import threading
import time

import pytest
from tests.runtime.links import BACK, TO_TARGET, Mesh, Relay


@pytest.fixture
def echo_server():
    """Sends back what it gets."""
    server = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def serve(connection):
        with connection:
            while data := connection.recv(1 << 16):
                connection.sendall(data)

    def accept():
        while not stop.is_set():
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.getsockname()[1]}"
    stop.set()
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def connected(relay, timeout=5):
    return socket.create_connection((relay.host, relay.port), timeout=timeout)


def there_and_back(connection, data):
    connection.sendall(data)
    found = b""
    while len(found) < len(data):
        found += connection.recv(1 << 16)
    return found


def test_bytes_pass_unchanged(echo_server):
    data = bytes(range(256)) * 4_000
    with Relay(echo_server) as relay, connected(relay) as connection:
        sender = threading.Thread(target=connection.sendall, args=(data,))
        sender.start()
        found = b""
        while len(found) < len(data):
            found += connection.recv(1 << 16)
        sender.join()
    assert found == data
    assert relay.carried == {TO_TARGET: len(data), BACK: len(data)}


def test_a_delay_is_paid_each_way(echo_server):
    with Relay(echo_server) as relay, connected(relay) as connection:
        there_and_back(connection, b"warm")
        relay.delay(0.1)
        began_s = time.monotonic()
        there_and_back(connection, b"x")
        assert 0.2 <= time.monotonic() - began_s < 30


@pytest.mark.parametrize("ways", [(), (TO_TARGET,), (BACK,)])
def test_what_a_cut_holds_back_comes_after_the_healing(echo_server, ways):
    with Relay(echo_server) as relay, connected(relay, timeout=0.2) as connection:
        assert there_and_back(connection, b"before") == b"before"
        relay.cut(*ways)
        connection.sendall(b"meanwhile")
        with pytest.raises(TimeoutError):
            connection.recv(1)
        relay.heal()
        connection.settimeout(5)
        assert connection.recv(100) == b"meanwhile"


def test_refusing_breaks_connections_and_takes_no_new_ones(echo_server):
    with Relay(echo_server) as relay, connected(relay) as connection:
        there_and_back(connection, b"before")
        relay.refuse()
        with pytest.raises((ConnectionError, AssertionError)):
            assert connection.recv(1) != b""
        with connected(relay) as second, pytest.raises((ConnectionError, AssertionError)):
            assert second.recv(1) != b""
        relay.heal()
        with connected(relay) as third:
            assert there_and_back(third, b"after") == b"after"


def test_a_throttled_link_takes_its_time(echo_server):
    with Relay(echo_server) as relay, connected(relay) as connection:
        there_and_back(connection, b"warm")
        relay.throttle(100_000)
        began_s = time.monotonic()
        there_and_back(connection, b"x" * 30_000)
        assert 0.3 <= time.monotonic() - began_s < 30


def test_a_mesh_parts_whom_it_is_told_to_part(echo_server):
    with Mesh() as mesh:
        host, port = mesh.dial("a")(echo_server)
        with socket.create_connection((host, port), timeout=0.2) as connection:
            assert there_and_back(connection, b"x") == b"x"
            mesh.partition({"a"}, {echo_server})
            connection.sendall(b"y")
            with pytest.raises(TimeoutError):
                connection.recv(1)
            other = mesh.dial("b")(echo_server)
            with socket.create_connection(other, timeout=5) as free:
                assert there_and_back(free, b"z") == b"z"
            mesh.heal()
            connection.settimeout(5)
            assert connection.recv(1) == b"y"
