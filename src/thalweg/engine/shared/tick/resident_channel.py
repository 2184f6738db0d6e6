"""What the driver and a resident task say to each other, over TCP.

A message is a kind, the tick's epoch, a length and bytes; nothing in it is unpickled. Each end
proves to the other that it knows the secret, which came with the task, before either says anything
else.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import struct
from contextlib import suppress
from enum import IntEnum
from typing import NamedTuple

HANDSHAKE_S = 5.0  # for a stranger, or a friend that has stopped
_HEADER = struct.Struct("!BQQ")
_HELLO = struct.Struct("!IIQ")
_NONCE = 32
_PROOF = 32
_LARGEST = 1 << 32  # bytes of a message: more is no message of ours


class Kind(IntEnum):
    RUN = 1  # the driver's: share, then the tick's specification
    DONE = 2  # the task's: its report
    FAILED = 3  # the task's: a traceback


class Message(NamedTuple):
    kind: Kind
    epoch: int
    body: bytes


class Hello(NamedTuple):
    """Who comes: which resident, Spark's how-manieth attempt at it, and its process."""

    number: int
    attempt: int
    process: int


class Gone(ConnectionError):
    """The other end is not there any more, or is not who it should be."""


class Channel:
    """One end. A `close` on any thread wakes whoever waits in `receive`."""

    def __init__(self, connected: socket.socket) -> None:
        # Without this, short messages wait for the acknowledgement of those before.
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket = connected

    def send(self, message: Message) -> None:
        header = _HEADER.pack(message.kind, message.epoch, len(message.body))
        try:
            self._socket.sendall(header + message.body)
        except OSError as error:
            raise Gone(str(error)) from None

    def receive(self, patience_s: float | None = None) -> Message | None:
        """The next message; None if none has begun to come for so long."""
        self._socket.settimeout(patience_s)
        try:
            first = self._socket.recv(1)
        except TimeoutError:
            return None
        except OSError as error:
            raise Gone(str(error)) from None
        if not first:
            raise Gone("closed")
        self._socket.settimeout(None)
        kind, epoch, size = _HEADER.unpack(first + self._exactly(_HEADER.size - 1))
        if size > _LARGEST:
            raise Gone(f"a message of {size} bytes")
        return Message(Kind(kind), epoch, self._exactly(size))

    def is_open(self) -> bool:
        """Whether the other end is still there, as far as can be told without asking it; between
        ticks it has nothing to say."""
        try:
            self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def close(self) -> None:
        """Ends the conversation for both. The descriptor goes with the object: while another thread
        waits for it, its number must not become somebody else's."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def __del__(self) -> None:
        self._socket.close()

    # --- who is there

    def welcome(self, secret: bytes) -> Hello:
        """The driver's part: let in who knows the secret."""
        self._socket.settimeout(HANDSHAKE_S)
        challenge = secrets.token_bytes(_NONCE)
        self._write(challenge)
        hello = self._exactly(_HELLO.size)
        theirs = self._exactly(_NONCE)
        if not hmac.compare_digest(
            self._exactly(_PROOF), _proof(secret, b"task", challenge, theirs, hello)
        ):
            raise Gone("it does not know the secret")
        self._write(_proof(secret, b"driver", challenge, theirs, hello))
        self._socket.settimeout(None)
        return Hello(*_HELLO.unpack(hello))

    def introduce(self, secret: bytes, who: Hello) -> None:
        """The task's part."""
        self._socket.settimeout(HANDSHAKE_S)
        challenge, own = self._exactly(_NONCE), secrets.token_bytes(_NONCE)
        hello = _HELLO.pack(*who)
        self._write(hello + own + _proof(secret, b"task", challenge, own, hello))
        if not hmac.compare_digest(
            self._exactly(_PROOF), _proof(secret, b"driver", challenge, own, hello)
        ):
            raise Gone("it does not know the secret")
        self._socket.settimeout(None)

    def _write(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Gone(str(error)) from None

    def _exactly(self, size: int) -> bytes:
        data = bytearray(size)
        view, have = memoryview(data), 0
        while have < size:
            try:
                count = self._socket.recv_into(view[have:])
            except OSError as error:
                raise Gone(str(error)) from None
            if not count:
                raise Gone("closed in the middle of a message")
            have += count
        return bytes(data)


def _proof(secret: bytes, role: bytes, *said: bytes) -> bytes:
    return hmac.digest(secret, role + b"".join(said), "sha256")
