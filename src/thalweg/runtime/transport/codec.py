"""Messages as bytes: msgpack, a message's type by its tag among those that its protocol lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

import msgspec

from thalweg.overlay.protocol import Message
from thalweg.overlay.stack import Stack


class BadFrame(ValueError):
    """Why a frame is no message of this node's protocols, in words without its content."""


class _Envelope(msgspec.Struct, frozen=True, array_like=True, gc=False):
    protocol: str
    message: msgspec.Raw


_open = msgspec.msgpack.Decoder(_Envelope).decode


class Codec:
    """For the protocols of one stack. Frames are encoded and decoded on different threads."""

    def __init__(self, stack: Stack) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._decode: dict[str, Callable[[msgspec.Raw], Message]] = {}
        for name, protocol in stack.protocols.items():
            if protocol.messages:
                kinds: Any = Union.__getitem__(protocol.messages)
                self._decode[name] = msgspec.msgpack.Decoder(kinds).decode

    def encode(self, protocol: str, message: Message) -> bytes:
        return self._encoder.encode((protocol, message))

    def decode(self, frame: bytes) -> tuple[str, Message]:
        try:
            envelope = _open(frame)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadFrame("no envelope of a message") from error
        decode = self._decode.get(envelope.protocol)
        if decode is None:
            raise BadFrame(f"a protocol that does not run here: {envelope.protocol[:40]!r}")
        try:
            return envelope.protocol, decode(envelope.message)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadFrame(f"no message of {envelope.protocol}") from error
