"""A JVM that hangs up is no error of the server that took its updates."""

import socket
import socketserver
from types import SimpleNamespace

import pytest

from thalweg.engine.accumulators import end_quietly


class Reading(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        if not (line := self.rfile.readline()):
            raise EOFError
        raise ValueError(line)


@pytest.mark.parametrize(("sent", "told"), [(b"", ""), (b"bad\n", "ValueError: b'bad")])
def test_only_a_hang_up_is_quiet(
    sent: bytes, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), Reading) as server:
        end_quietly(SimpleNamespace(_accumulatorServer=server))  # type: ignore[arg-type]
        with socket.create_connection(server.server_address) as client:
            client.sendall(sent)
        server.handle_request()
    err = capsys.readouterr().err
    assert told in err if told else err == ""


def test_a_context_without_such_a_server_is_left_alone() -> None:
    end_quietly(SimpleNamespace())  # type: ignore[arg-type]
