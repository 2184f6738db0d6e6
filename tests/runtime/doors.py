"""A fault injector between the processes of a network: all that nodes say to each other, messages,
streams (Arrow Flight) and requests, passes a link that can be cut, slowed and healed.

A node listens on 127.0.0.1, and tells others a host of its own, where a door stands before each of
its ports. Who knocks is found by the process that the connection belongs to. So a link is between
two nodes, each way by itself; users go to 127.0.0.1, and pass no door.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from tests.runtime.links import Link

HERE = "127.0.0.1"
_KINDS = ("protocols", "http", "data")
_LOOKS = 3
_LOOK_FOR_S = 0.2  # no port is used again so soon


class Doors:
    """Of nodes whose data directories are in a folder, under their names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pids: Mapping[str, int] = {}
        self._ends: dict[str, str] = {}  # as last looked: connections, and processes' ends of them
        self._owners: dict[str, str] = {}
        self._looked_s = 0.0
        self.links: dict[tuple[str, str], Link] = {}  # who knocks, and at whose door
        self._hosts: dict[str, str] = {}
        self._ports: dict[str, dict[str, int]] = {}
        self._apart: set[tuple[str, str]] = set()
        self._fault: Callable[[Link], None] = Link.cut
        self._delay_s: Callable[[str, str], float] = lambda _, __: 0.0
        self._lock = threading.RLock()
        self._selector = selectors.DefaultSelector()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="doors", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(10)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        for link in self.links.values():
            link.close()

    def options(self, node: str) -> list[str]:
        """With which a node is to be started: the ports behind its doors, which it keeps."""
        with self._lock:
            if node not in self._ports:
                self._hosts[node] = f"127.0.1.{len(self._hosts) + 1}"
                self._ports[node] = {kind: self._door(node) for kind in _KINDS}
            host, ports = self._hosts[node], self._ports[node]
        listen = f"{HERE}:{ports['protocols']}"
        return [
            *("--listen", listen, "--address", host),
            *("--port", str(ports["http"]), "--data-port", str(ports["data"])),
        ]

    def url(self, node: str) -> str:
        """For users."""
        return f"http://{HERE}:{self._ports[node]['http']}"

    # --- faults

    def part(
        self,
        one: Iterable[str],
        others: Iterable[str],
        fault: Callable[[Link], None] = Link.cut,
    ) -> None:
        """No node of one side reaches one of the other, also if they have never talked yet."""
        others = list(others)
        with self._lock:
            self._fault = fault
            self._apart |= {(a, b) for a in one for b in others if a != b}
            self._apart |= {(b, a) for a, b in self._apart}
            for ends, link in self.links.items():
                if ends in self._apart:
                    fault(link)

    def cut_off(self, node: str, fault: Callable[[Link], None] = Link.cut) -> None:
        """One node from all others."""
        self.part([node], [n for n in self._ports if n != node], fault)

    def slow(self, node: str, delay_s: float, bytes_per_s: float) -> None:
        """All links of one node."""

        def fault(link: Link) -> None:
            link.delay(delay_s)
            link.throttle(bytes_per_s)

        self.cut_off(node, fault)

    def delay(self, seconds: Callable[[str, str], float]) -> None:
        """What the way between two nodes takes, each way; also of links that are yet to be made."""
        with self._lock:
            self._delay_s = seconds
            for ends, link in self.links.items():
                link.delay(seconds(*ends))

    def heal(self) -> None:
        with self._lock:
            self._apart.clear()
            for link in self.links.values():
                link.heal()
        self.delay(self._delay_s)

    # --- on the doors' thread

    def _door(self, node: str) -> int:
        """Before a port that is free on both sides of it."""
        while True:
            with socket.create_server((HERE, 0)) as free:
                port: int = free.getsockname()[1]
                try:
                    door = socket.create_server((self._hosts[node], port))
                except OSError:
                    continue
            self._selector.register(door, selectors.EVENT_READ, (node, (HERE, port)))
            return port

    def _run(self) -> None:
        while not self._stop.is_set():
            for key, _ in self._selector.select(timeout=0.1):
                with suppress(OSError):  # who has knocked may be gone
                    connection, peer = key.fileobj.accept()  # type: ignore[union-attr]
                    node, target = key.data
                    source = self._source(peer, key.fileobj.getsockname())  # type: ignore[union-attr]
                    if source is None:
                        connection.close()  # nobody comes through unknown; a node tries again
                    else:
                        self._link(source, node).take(connection, target)

    def _source(self, peer: tuple[str, int], door: tuple[str, int]) -> str | None:
        """None: no node, or one that has hung up already. Those who knock together are found by one
        look at all connections: of many nodes, each look takes long."""
        connection = connection_of(peer, door)
        for attempt in range(_LOOKS):  # the kernel's table is not read at once
            if attempt or time.monotonic() - self._looked_s > _LOOK_FOR_S:
                self._look()
            found = self._owners.get(self._ends.get(connection, ""))
            if found is not None:
                return found
            if connection in self._ends:
                self._pids = processes_in(self._folder)  # it may have begun just now
        return None

    def _look(self) -> None:
        self._looked_s = time.monotonic()
        self._ends, self._owners = all_ends(), all_owners(self._pids)

    def _link(self, source: str, to: str) -> Link:
        with self._lock:
            if (source, to) not in self.links:
                link = self.links[source, to] = Link()
                link.delay(self._delay_s(source, to))
                if (source, to) in self._apart:
                    self._fault(link)
            return self.links[source, to]


def all_owners(pids: Mapping[str, int]) -> dict[str, str]:
    """By their ends of connections: the names of processes."""
    found = {}
    for name, pid in pids.items():
        with suppress(OSError):
            for opened in os.scandir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    end = os.readlink(opened.path)  # noqa: PTH115
                    if end.startswith("socket:"):
                        found[end] = name
    return found


def processes_in(folder: Path) -> dict[str, int]:
    """The nodes that run there, also those that are about to start."""
    found = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if b"--data-dir" in words:
                home = Path(os.fsdecode(words[words.index(b"--data-dir") + 1]))
                if home.parent == folder:
                    found[home.name] = int(entry.name)
    return found


_MAPPED = "0000000000000000FFFF0000"  # before an address of IPv4 in the table of IPv6


def connection_of(peer: tuple[str, int], door: tuple[str, int]) -> str:
    """As the kernel's table names it."""
    return " ".join(
        f"{socket.inet_aton(host)[::-1].hex().upper()}:{port:04X}" for host, port in (peer, door)
    )


def all_ends() -> dict[str, str]:
    """Of all connections: the near end, as processes see it. Closed ones have none."""
    found = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if words[9] != "0":
                ends = " ".join(word.removeprefix(_MAPPED) for word in words[1:3])
                found[ends] = f"socket:[{words[9]}]"
    return found
