"""Links between sockets that can be slowed, cut and healed: TCP relays on loopback.

A link knows nothing of what it carries: it serves the nodes' messages and Arrow Flight alike.
"""

import asyncio
import contextlib
import socket
import threading

CHUNK = 1 << 16
MOST_UNDER_WAY = 64  # chunks in one direction of a connection; then its sender must wait

TO_TARGET, BACK = "to the target", "back"


class Link:
    """Carries connections that it is given; what becomes of them can be changed at any time.

    - `delay(seconds)`: each byte takes so much longer.
    - `throttle(bytes_per_s)`: of all connections together, each way; None is full speed.
    - `cut()`: nothing passes, and nobody is told, as when a cable is pulled; new connections wait
      too. One way with `cut(BACK)` or `cut(TO_TARGET)`. What was under way arrives after `heal()`,
      as TCP would see to it.
    - `hang_up()`: all connections break now. `refuse()`: and no new ones, until `heal()`.
    """

    def __init__(self):
        self.carried = {TO_TARGET: 0, BACK: 0}  # bytes
        self.connections = 0  # so far
        self._delay_s = 0.0
        self._bytes_per_s = None
        self._free_at_s = {TO_TARGET: 0.0, BACK: 0.0}
        self._cut = set()
        self._refusing = False
        self._writers = set()
        self._loop = asyncio.new_event_loop()
        self._changed = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="link", daemon=True)
        self._thread.start()
        self._ready.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- for tests, from any thread ---

    def delay(self, seconds):
        self._do(lambda: setattr(self, "_delay_s", seconds))

    def throttle(self, bytes_per_s):
        self._do(lambda: setattr(self, "_bytes_per_s", bytes_per_s))

    def cut(self, *ways):
        self._do(lambda: self._cut.update(ways or (TO_TARGET, BACK)))

    def heal(self):
        def act():
            self._cut.clear()
            self._refusing = False
            self._delay_s, self._bytes_per_s = 0.0, None

        self._do(act)

    def hang_up(self):
        self._do(self._hang_up)

    def refuse(self):
        def act():
            self._refusing = True
            self._hang_up()

        self._do(act)

    def take(self, connection, target):
        """A socket that somebody has connected, who shall talk to the target."""

        async def taking():
            reader, writer = await asyncio.open_connection(sock=connection)
            await self._carry_both(reader, writer, target)

        asyncio.run_coroutine_threadsafe(taking(), self._loop)

    def close(self):
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)

    def _do(self, act):
        async def acting():
            act()
            async with self._changed:
                self._changed.notify_all()

        asyncio.run_coroutine_threadsafe(acting(), self._loop).result(60)

    # --- on the link's thread ---

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._changed = asyncio.Condition()
        self._begin()
        self._loop.call_soon(self._ready.set)
        self._loop.run_forever()
        self._end()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._hang_up()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def _begin(self):
        pass

    def _end(self):
        pass

    def _hang_up(self):
        for writer in self._writers:
            writer.transport.abort()

    async def _carry_both(self, reader, writer, target):
        self._writers.add(writer)
        there = None
        try:
            if self._refusing:
                return
            self.connections += 1
            await self._passes(TO_TARGET)
            from_target, there = await asyncio.open_connection(*target)
            self._writers.add(there)
            ways = [
                asyncio.ensure_future(self._carry(reader, there, TO_TARGET)),
                asyncio.ensure_future(self._carry(from_target, writer, BACK)),
            ]
            try:
                await asyncio.gather(*ways)
            finally:
                for way in ways:
                    way.cancel()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for end in filter(None, (writer, there)):
                self._writers.discard(end)
                end.transport.abort()

    async def _passes(self, way):
        async with self._changed:
            await self._changed.wait_for(lambda: way not in self._cut)

    async def _carry(self, reader, writer, way):
        """Reads ahead, so that a delay costs time and no bandwidth."""
        under_way = asyncio.Queue(MOST_UNDER_WAY)
        reading = asyncio.ensure_future(self._read_ahead(reader, under_way))
        try:
            while True:
                due_s, chunk = await under_way.get()
                await asyncio.sleep(max(0.0, due_s - self._loop.time()))
                await self._passes(way)
                await self._pay_for(len(chunk or b""), way)
                if chunk is None:
                    raise ConnectionResetError("the other end broke")
                if not chunk:
                    with contextlib.suppress(OSError):
                        writer.write_eof()
                    return
                writer.write(chunk)
                await writer.drain()
                self.carried[way] += len(chunk)
        finally:
            reading.cancel()

    async def _read_ahead(self, reader, under_way):
        """Chunks with the times at which they are due; b"" is the end, None a broken connection."""
        chunk = None
        while chunk != b"":
            try:
                chunk = await reader.read(CHUNK)
            except OSError:
                await under_way.put((0.0, None))
                return
            await under_way.put((self._loop.time() + self._delay_s, chunk))

    async def _pay_for(self, size, way):
        if self._bytes_per_s is not None:
            start_s = max(self._loop.time(), self._free_at_s[way])
            self._free_at_s[way] = start_s + size / self._bytes_per_s
            await asyncio.sleep(self._free_at_s[way] - self._loop.time())


class Relay(Link):
    """Whoever connects to `host:port` of this talks to the target."""

    def __init__(self, target):
        host, port = target.rsplit(":", 1) if isinstance(target, str) else target
        self.target = (host, int(port))
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(128)
        self.host, self.port = self._socket.getsockname()
        self.address = f"{self.host}:{self.port}"
        super().__init__()

    def _begin(self):
        start = asyncio.start_server(self._connected, sock=self._socket)
        self._server = self._loop.run_until_complete(start)

    def _end(self):
        self._server.close()

    async def _connected(self, reader, writer):
        await self._carry_both(reader, writer, self.target)


class Mesh:
    """A relay for each pair of nodes that talk, made when one first dials the other."""

    def __init__(self):
        self.relays = {}  # (from, to) -> Relay
        self._sides = {}  # address -> side, while there is a partition
        self._lock = threading.Lock()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for relay in self.relays.values():
            relay.close()

    def dial(self, source):
        """The `dial` of the node `source`; a function, as addresses may be known later."""

        def find(to):
            relay = self.relay(source() if callable(source) else source, to)
            return relay.host, relay.port

        return find

    def relay(self, source, to):
        with self._lock:
            if (source, to) not in self.relays:
                self.relays[source, to] = Relay(to)
                if self._are_apart(source, to):
                    self.relays[source, to].cut()
            return self.relays[source, to]

    def partition(self, *sides):
        """Nodes of different sides don't hear each other any more; who is in none hears all."""
        with self._lock:
            self._sides = {address: i for i, side in enumerate(sides) for address in side}
            for (source, to), relay in self.relays.items():
                if self._are_apart(source, to):
                    relay.cut()

    def heal(self):
        with self._lock:
            self._sides = {}
            for relay in self.relays.values():
                relay.heal()

    def _are_apart(self, source, to):
        first, second = self._sides.get(source), self._sides.get(to)
        return None not in (first, second) and first != second
