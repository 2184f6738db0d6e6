"""The way to one peer: a bounded queue, and a connection while there is something to say.

Frames that find the queue full push out the oldest; those that waited too long are dropped when
their turn comes. A failed connection is tried again after growing pauses for as long as something
waits. Only on the transport's own thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import ssl
from collections import deque
from collections.abc import Callable

from thalweg.overlay.protocol import Address
from thalweg.runtime.transport.addresses import host_and_port
from thalweg.runtime.transport.counts import Counts
from thalweg.runtime.transport.frames import (
    VERSION,
    Hello,
    Refused,
    framed,
    greeting,
    read_answer,
)
from thalweg.runtime.transport.settings import TransportSettings
from thalweg.runtime.transport.tls import check_certificate

Dial = Callable[[Address], tuple[str, int]]


class Link:
    def __init__(
        self,
        hello: Hello,
        dial: Dial,
        settings: TransportSettings,
        counts: Counts,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._hello = hello
        self._dial = dial
        self._settings = settings
        self._counts = counts
        self._tls = tls
        self._queue: deque[tuple[float, bytes]] = deque()  # when it came, what
        self._queued_bytes = 0
        self._writer: asyncio.StreamWriter | None = None  # while it is connected
        self._news = asyncio.Event()

    @property
    def is_empty(self) -> bool:
        """All that was put in has left, or was dropped."""
        writer = self._writer
        return not self._queue and (writer is None or not writer.transport.get_write_buffer_size())

    def put(self, frame: bytes) -> None:
        self._queue.append((_now_s(), frame))
        self._queued_bytes += len(frame)
        limits = self._settings
        while (
            len(self._queue) > limits.most_queued or self._queued_bytes > limits.most_queued_bytes
        ):
            self._pop()
            self._counts.add("dropped: the queue was full")
        self._news.set()

    async def run(self) -> None:
        """Until nothing was to be said for long."""
        backoff_s = self._settings.backoff_s
        while await self._has_news():
            try:
                async with asyncio.timeout(self._settings.connect_within_s):
                    reader, writer = await self._connect()
            except (OSError, ssl.SSLError, TimeoutError, Refused) as error:
                if isinstance(error, Refused | ssl.SSLError):
                    self._counts.add("refused", f"{self._hello.to}: {error}")
                self._counts.add("connections that failed")
                self._drop_stale()
                await asyncio.sleep(backoff_s * (0.5 + random.random()))
                backoff_s = min(self._settings.longest_backoff_s, 2 * backoff_s)
                continue
            backoff_s = self._settings.backoff_s
            self._writer = writer
            try:
                await self._pump(reader, writer)
            except (OSError, ssl.SSLError, TimeoutError):
                self._counts.add("connections that broke")
            finally:
                self._writer = None
                writer.transport.abort()

    async def _has_news(self) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.idle_after_s):
                await self._news.wait()
        return bool(self._queue)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        to = self._hello.to
        host, port = self._dial(to)
        # The certificate is that of the address, wherever it is dialled.
        name = host_and_port(to)[0] if self._tls is not None else None
        reader, writer = await asyncio.open_connection(
            host, port, ssl=self._tls, server_hostname=name
        )
        try:
            patient(writer, self._settings.stuck_after_s)
            if self._tls is not None:
                check_certificate(writer.get_extra_info("ssl_object"), to)
            writer.write(greeting(self._hello))
            await read_answer(reader)
        except BaseException:
            writer.transport.abort()
            raise
        return reader, writer

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until the other side hangs up, takes nothing any more, or nothing is to be said."""
        hung_up = asyncio.ensure_future(reader.read(1))
        try:
            while not hung_up.done():
                self._drop_stale()
                if not self._queue:
                    self._news.clear()
                    news = asyncio.ensure_future(self._news.wait())
                    await asyncio.wait(
                        (hung_up, news),
                        timeout=self._settings.idle_after_s,
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                    news.cancel()
                    if not self._queue:
                        return
                    continue
                writer.write(framed(self._pop()))
                async with asyncio.timeout(self._settings.stuck_after_s):
                    await writer.drain()
        finally:
            hung_up.cancel()

    def _is_too_long(self) -> bool:
        limits = self._settings
        is_too_large = self._queued_bytes > limits.most_queued_bytes
        return is_too_large or len(self._queue) > limits.most_queued

    def _pop(self) -> bytes:
        _, frame = self._queue.popleft()
        self._queued_bytes -= len(frame)
        return frame

    def _drop_stale(self) -> None:
        oldest_s = _now_s() - self._settings.stale_after_s
        while self._queue and self._queue[0][0] < oldest_s:
            self._pop()
            self._counts.add("dropped: too old")
        if not self._queue:
            self._news.clear()


def hello_to(network: str, sender: Address, to: Address) -> Hello:
    return Hello(network, sender, to, VERSION)


def patient(writer: asyncio.StreamWriter, stuck_after_s: float) -> None:
    """Send at once, and notice within a while that the other machine is gone."""
    sock: socket.socket | None = writer.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):  # not everywhere
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, max(1, int(stuck_after_s / 2)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, int(stuck_after_s / 6)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(stuck_after_s * 1000))


def _now_s() -> float:
    return asyncio.get_running_loop().time()
