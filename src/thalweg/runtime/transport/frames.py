"""What a connection carries: frames, each with its length in front, the greetings first.

Who dials says Hello; who is dialled answers Welcome, or Sorry with the reason. So both know before
the first message that the other is the node it is taken for, of the same network and version.
Messages go one way, from who dialled; the other way has a connection of its own.
"""

from __future__ import annotations

import asyncio
import struct
from typing import TypeVar

import msgspec

from thalweg.overlay.protocol import Address

VERSION = 1  # of frames, greetings, and of what protocols say; nodes of others are refused
GREETING_BYTES = 4_096  # at most

_LENGTH = struct.Struct(">I")

T = TypeVar("T")


class Refused(Exception):
    """Why no connection came about, though there is somebody at the other end."""


class Hello(msgspec.Struct, frozen=True, tag=True):
    network: str
    sender: Address
    to: Address
    version: int


class Welcome(msgspec.Struct, frozen=True, tag=True):
    pass


class Sorry(msgspec.Struct, frozen=True, tag=True):
    why: str


_hello = msgspec.msgpack.Decoder(Hello)
_answer = msgspec.msgpack.Decoder(Welcome | Sorry)


def framed(content: bytes) -> bytes:
    return _LENGTH.pack(len(content)) + content


async def read_frame(reader: asyncio.StreamReader, most_bytes: int) -> bytes | None:
    """None at the end of the stream; a frame that is too long can't be skipped, and is refused."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if length > most_bytes:
            raise Refused(f"a frame of {length} bytes; at most {most_bytes} are taken")
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError:
        return None


def greeting(hello: Hello | Welcome | Sorry) -> bytes:
    return framed(msgspec.msgpack.encode(hello))


async def read_hello(reader: asyncio.StreamReader) -> Hello:
    return await _read(reader, _hello)


async def read_answer(reader: asyncio.StreamReader) -> None:
    answer = await _read(reader, _answer)
    if isinstance(answer, Sorry):
        raise Refused(answer.why[:200])


async def _read(reader: asyncio.StreamReader, decoder: msgspec.msgpack.Decoder[T]) -> T:
    frame = await read_frame(reader, GREETING_BYTES)
    if frame is None:
        raise ConnectionResetError("the other side hung up before its greeting")
    try:
        return decoder.decode(frame)
    except msgspec.DecodeError as error:
        raise Refused("the other side does not speak this protocol") from error


def objection(hello: Hello, network: str, address: Address) -> str | None:
    """Why whoever says this is not let in; None if it is."""
    if hello.version != VERSION:
        return f"{address} speaks version {VERSION}, not {hello.version}: run one version"
    if hello.network != network:
        return f"{address} is of the network {network!r}, not {hello.network[:80]!r}"
    if hello.to != address:
        return f"this is {address}, not {hello.to[:80]}"
    return None
