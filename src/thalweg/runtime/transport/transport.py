"""Messages over TCP: one connection to each peer, one from each, on a thread of its own.

Each peer has one outgoing connection (`link.py`), which is also the only way to it; its answers
come on its own. What can't be delivered is dropped and counted: protocols tolerate loss, and none
of them waits for a peer. What comes and is no message of this node's protocols is counted, logged
once, and dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections import deque
from collections.abc import Coroutine
from typing import Any

from thalweg.overlay.protocol import Address, Message
from thalweg.overlay.stack import Stack
from thalweg.runtime.driver.post import Receive
from thalweg.runtime.transport.addresses import BadAddress, address_of, host_and_port, is_loopback
from thalweg.runtime.transport.codec import BadFrame, Codec
from thalweg.runtime.transport.counts import Counts
from thalweg.runtime.transport.frames import (
    Refused,
    Sorry,
    Welcome,
    greeting,
    objection,
    read_frame,
    read_hello,
)
from thalweg.runtime.transport.link import Dial, Link, hello_to, patient
from thalweg.runtime.transport.settings import TransportSettings
from thalweg.runtime.transport.tls import Tls, check_certificate

log = logging.getLogger(__name__)


class Transport:
    """Bound when it is made, so that a free port (`host:0`) is known as part of its address.

    `address` is what others are told, where it differs from what is listened to, or `advertised`
    its host, with the port that is listened to; `dial` is where to connect for an address, where
    that is not the address itself.
    """

    def __init__(
        self,
        listen: str,
        *,
        network: str,
        address: Address | None = None,
        advertised: str | None = None,
        tls: Tls | None = None,
        dial: Dial = host_and_port,
        settings: TransportSettings | None = None,
    ) -> None:
        host, port = host_and_port(listen)
        if tls is None and not is_loopback(host):
            raise BadAddress(
                f"{listen} can be reached from other machines: nodes listen there with "
                f"certificates only (`thalweg network certificates` makes them), "
                f"or on 127.0.0.1 without"
            )
        self._socket = _listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.address = address or address_of(advertised or host, self.port)
        host_and_port(self.address)  # raises where others could not reach it
        self.network = network
        self._tls = tls
        self._dial = dial
        self._settings = settings or TransportSettings()
        self._counts = Counts(self.address)
        self._codec: Codec | None = None
        self._receive: Receive | None = None
        self._links: dict[Address, Link] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"{self.address} post", daemon=True)
        # From other threads to this one's.
        self._outbox: deque[tuple[Address, bytes]] = deque()
        self._rung = False
        self._lock = threading.Lock()
        self._closed = False

    def start(self, stack: Stack, receive: Receive) -> None:
        self._codec, self._receive = Codec(stack), receive
        self._thread.start()

    def send(self, to: Address, protocol: str, message: Message) -> None:
        assert self._codec is not None
        try:
            frame = self._codec.encode(protocol, message)
        except Exception as error:  # a protocol's mistake, and not the peer's or the driver's
            kind = type(message).__name__
            self._counts.add("can't be encoded", f"{kind} of {protocol}: {error}")
            return
        if len(frame) > self._settings.most_frame_bytes:
            kind = type(message).__name__
            self._counts.add("too large to send", f"{kind} of {protocol}: {len(frame)} bytes")
            return
        with self._lock:
            if self._closed:
                return
            self._outbox.append((to, frame))
            ring, self._rung = not self._rung, True
            if ring:
                self._loop.call_soon_threadsafe(self._take_outbox)

    def counts(self) -> dict[str, int]:
        """What happened how often, by name."""
        return self._counts.all()

    def close(self, flush_within_s: float = 0.0) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if not self._thread.is_alive():
            self._socket.close()
            self._loop.close()
            return
        asyncio.run_coroutine_threadsafe(self._end(flush_within_s), self._loop)
        self._thread.join(flush_within_s + 5)

    # --- on the transport's own thread ---

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with contextlib.closing(self._loop):
            server = self._loop.run_until_complete(
                asyncio.start_server(
                    self._connected,
                    sock=self._socket,
                    ssl=self._tls.server if self._tls else None,
                    ssl_handshake_timeout=self._settings.connect_within_s if self._tls else None,
                )
            )
            try:
                self._loop.run_forever()
            finally:
                server.close()
                tasks = asyncio.all_tasks(self._loop)
                for task in tasks:
                    task.cancel()
                self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    async def _end(self, flush_within_s: float) -> None:
        self._take_outbox()
        deadline_s = self._loop.time() + flush_within_s
        while self._loop.time() < deadline_s and not all(k.is_empty for k in self._links.values()):
            await asyncio.sleep(0.005)
        self._loop.stop()

    def _take_outbox(self) -> None:
        with self._lock:
            outbox, self._outbox = self._outbox, deque()
            self._rung = False
        for to, frame in outbox:
            self._counts.add("sent")
            self._counts.add("bytes sent", count=len(frame))
            self._link(to).put(frame)

    def _link(self, to: Address) -> Link:
        link = self._links.get(to)
        if link is None:
            hello = hello_to(self.network, self.address, to)
            client = self._tls.client if self._tls else None
            link = Link(hello, self._dial, self._settings, self._counts, client)
            self._links[to] = link
            self._spawn(self._run_link(to, link))
        return link

    async def _run_link(self, to: Address, link: Link) -> None:
        try:
            await link.run()
        except BadAddress as error:
            self._counts.add("no address", str(error))
        finally:
            del self._links[to]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s: a connection failed unexpectedly", self.address, exc_info=error)

    # --- connections from others ---

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections > self._settings.most_connections:
                raise Refused(f"more than {self._settings.most_connections} connections")
            async with asyncio.timeout(self._settings.connect_within_s):
                sender = await self._greet(reader, writer)
            await self._listen_to(sender, reader)
        except Refused as error:
            self._counts.add("refused", str(error))
        except (OSError, TimeoutError):
            self._counts.add("connections that broke")
        except asyncio.CancelledError:
            pass  # the transport ends
        finally:
            self._connections -= 1
            writer.transport.abort()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Address:
        patient(writer, self._settings.stuck_after_s)
        hello = await read_hello(reader)
        why = objection(hello, self.network, self.address)
        if why is None:
            try:
                host_and_port(hello.sender)
                if self._tls is not None:
                    check_certificate(writer.get_extra_info("ssl_object"), hello.sender)
            except (BadAddress, Refused) as error:
                why = str(error)
        writer.write(greeting(Welcome() if why is None else Sorry(why)))
        await writer.drain()
        if why is not None:
            raise Refused(why)
        return hello.sender

    async def _listen_to(self, sender: Address, reader: asyncio.StreamReader) -> None:
        assert self._codec is not None
        assert self._receive is not None
        while (frame := await read_frame(reader, self._settings.most_frame_bytes)) is not None:
            self._counts.add("received")
            self._counts.add("bytes received", count=len(frame))
            try:
                protocol, message = self._codec.decode(frame)
            except BadFrame as error:
                self._counts.add("not understood", f"{error}, from {sender}")
                continue
            self._receive(sender, protocol, message)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(128)
    except OSError as error:
        found.close()
        place = address_of(host, port)
        raise BadAddress(f"{place} can't be listened to: {error.strerror or error}") from error
    found.setblocking(False)
    return found
