"""Links between nodes that can be cut and healed: what others are told is a relay's address.

A node listens on 127.0.0.1 and is known as another address of loopback, with the same port. There
a relay passes bytes on. Who dials says who it is, so that each direction of each pair is a link.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from typing import Any

from thalweg.runtime.transport.frames import greeting, read_hello

_CHUNK = 1 << 16


class Relays:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._cut: set[tuple[str, str]] = set()  # links, by the addresses that others are told
        self._open: dict[asyncio.StreamWriter, tuple[str, str]] = {}
        self._servers: dict[str, asyncio.Server] = {}

    def host(self, number: int) -> str:
        return f"127.0.0.{number + 10}"

    def stand_before(self, address: str) -> None:
        """From now on what is sent to this address reaches 127.0.0.1, unless it is cut."""
        if address not in self._servers:
            host, _, port = address.rpartition(":")
            self._servers[address] = self._do(
                asyncio.start_server(self._passing_to(address, int(port)), host, int(port))
            )

    def cut(self, senders: Iterable[str], receivers: Iterable[str]) -> None:
        """Nothing arrives any more, and what was under way is lost."""
        here, there = list(senders), list(receivers)
        self._do(self._sever({(a, b) for a in here for b in there if a != b}))

    def heal(self) -> None:
        self._cut = set()

    def close(self) -> None:
        for server in self._servers.values():
            self._loop.call_soon_threadsafe(server.close)
        self._do(self._sever(set(self._open.values())))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _sever(self, links: set[tuple[str, str]]) -> None:
        self._cut |= links
        for writer, link in list(self._open.items()):
            if link in links:
                writer.transport.abort()

    def _passing_to(self, address: str, port: int) -> Any:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, asyncio.IncompleteReadError):
                hello = await read_hello(reader)
                link = (hello.sender, address)
                if link not in self._cut:
                    answers, onward = await asyncio.open_connection("127.0.0.1", port)
                    self._open |= {writer: link, onward: link}
                    onward.write(greeting(hello))
                    await asyncio.gather(_pass(reader, onward), _pass(answers, writer))
                    del self._open[writer], self._open[onward]
            writer.transport.abort()

        return serve


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()
