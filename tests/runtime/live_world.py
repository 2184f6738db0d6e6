"""The simulator's scenarios over live nodes: same workload, same promises, real sockets and disks.

A scenario asks a world for its hosts and looks into their stacks. Here these are copies, taken
between two steps of each node. Copies of different nodes are of different moments, so only what
must hold at last is asked, not what may never be.
"""

import copy
import threading
import time
from collections import Counter

from tests.runtime.cluster import QUICK_POST

from thalweg.overlay.generator import Generator, seed_of
from thalweg.runtime.driver import Driver
from thalweg.runtime.transport import Transport
from thalweg.sim.host import Host
from thalweg.sim.options import RESTARTS, Options
from thalweg.sim.weather import Rates


class LiveWorld:
    """Nodes are n1:1, n2:1 and so on, wherever they listen: names, and so rings, are the same in
    each run."""

    def __init__(self, kind, folder, nodes, seed=1):
        options = Options(seed, nodes, 1_000, Rates(), {}, RESTARTS, False)
        self.scenario = kind(options, Generator(seed_of(seed, "workload")))
        self.network = self.scenario.network()
        self.hosts = {}  # as they were when last looked at
        self.faults = Counter()
        self.errors = []
        self._folder = folder
        self._drivers = {}
        self._ports = {}
        self._seen = []  # all values that were delivered, by identity
        self._lock = threading.RLock()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for driver in self._drivers.values():
            driver.close()

    # --- what scenarios use ---

    @property
    def now_us(self):
        return time.time_ns() // 1000

    def up(self):
        return [h for h in self.hosts.values() if h.is_up]

    def call(self, address, protocol, request):
        """Until all that it caused in its node was delivered."""
        values = self._drivers[address].call(protocol, request).result(120)
        end_s = time.monotonic() + 120
        while not all(any(v is seen for seen in self._seen) for v in values):
            assert time.monotonic() < end_s
            time.sleep(0.0005)

    # --- what tests do ---

    def look(self):
        """Copy the state of each node."""
        for address, driver in self._drivers.items():
            self.hosts[address].stack = driver.read(copy.deepcopy)

    def start(self, address):
        transport = Transport(
            self._listen_at(address),
            network="live",
            address=address,
            dial=self._dial,
            settings=QUICK_POST,
        )
        self._ports[address] = transport.port
        host = self.hosts.setdefault(address, Host(address, index=len(self.hosts)))
        host.lives += 1
        folder = self._folder / address.replace(":", "-")
        driver = Driver(
            lambda: self.scenario.build(address), post=transport, folder=folder, seed=host.lives
        )
        for name in self.scenario.build(address).protocols:
            driver.on(name, lambda value, name=name: self._deliver(host, name, value))
        self._drivers[address] = driver
        driver.start()
        self.look()
        return host

    def enter(self, address):
        self.start(address)
        self.scenario.admit(self, address)

    def crash(self, address):
        self._drivers.pop(address).close()
        self.hosts[address].stack = None

    def act(self, times, every_s):
        for _ in range(times):
            self.look()
            self.scenario.act(self)
            time.sleep(every_s)

    def settle(self, within_s):
        """Until all is as promised."""
        end_s = time.monotonic() + within_s
        while True:
            self.look()
            with self._lock:
                assert not self.errors, self.errors
            missing = self.scenario.unsettled(self)
            if missing is None:
                return
            assert time.monotonic() < end_s, missing
            time.sleep(0.05)

    def _deliver(self, host, protocol, value):
        with self._lock:
            try:
                self.scenario.delivered(host, protocol, value)
            except Exception as error:
                self.errors.append(f"{host.address} delivered {value!r}: {error!r}")
            self._seen.append(value)

    def _dial(self, address):
        return "127.0.0.1", self._ports.get(address, 1)  # port 1: nobody

    def _listen_at(self, address):
        return f"127.0.0.1:{self._ports.get(address, 0)}"
