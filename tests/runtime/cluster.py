"""Several live nodes in one process, on loopback sockets."""

from tests.runtime.links import Mesh
from tests.runtime.waiting import eventually

from thalweg.overlay.membership import Join, Membership, Settings
from thalweg.runtime.driver import Driver
from thalweg.runtime.transport import Transport, TransportSettings

# A tenth of the usual times: the tests' nodes are near each other.
QUICK = Settings(
    period_us=100_000,
    ack_within_us=80_000,
    suspect_after_us=200_000,
    down_after_us=400_000,
    compare_every_us=300_000,
)
QUICK_POST = TransportSettings(
    connect_within_s=1.0, backoff_s=0.02, longest_backoff_s=0.2, stale_after_s=2.0
)


class Node:
    def __init__(self, folder, build, mesh=None, listen="127.0.0.1:0", **options):
        dial = {} if mesh is None else {"dial": mesh.dial(lambda: self.address)}
        settings = options.pop("settings", QUICK_POST)
        self.transport = Transport(listen, network="test", settings=settings, **dial, **options)
        self.address = self.transport.address
        self.folder = folder / self.address.replace(":", "-")
        self.driver = Driver(build, post=self.transport, folder=self.folder)
        self.heard = []  # (protocol, value)

    def start(self, *protocols):
        for name in protocols:
            self.driver.on(name, lambda value, name=name: self.heard.append((name, value)))
        self.driver.start()

    def read(self, name, function):
        return self.driver.read(lambda stack: function(stack[name]))

    def up(self):
        return set(self.read("membership", Membership.up))


class Cluster:
    """Nodes that know each other through the first one; `with` closes them."""

    def __init__(self, folder, build, size, *, relays=False, listen_to=()):
        self.mesh = Mesh() if relays else None
        self._folder, self._build, self._listen_to = folder, build, listen_to
        self.nodes = []
        for _ in range(size):
            self.add()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.driver.close()
        if self.mesh is not None:
            self.mesh.__exit__()

    def __iter__(self):
        return iter(self.nodes)

    def __getitem__(self, index):
        return self.nodes[index]

    @property
    def addresses(self):
        return {n.address for n in self.nodes}

    def add(self):
        node = Node(self._folder, self._build, self.mesh)
        node.start(*self._listen_to)
        if self.nodes:
            node.driver.call("membership", Join((self.nodes[0].address,))).result(5)
        self.nodes.append(node)
        return node

    def stop(self, node, *, leave=False):
        node.driver.leave() if leave else node.driver.close()
        self.nodes.remove(node)

    def restart(self, node):
        """At its address, with its disk, and without an introduction."""
        again = Node(self._folder, self._build, self.mesh, listen=node.address)
        again.start(*self._listen_to)
        self.nodes.append(again)
        return again

    def wait_until_all_know_all(self):
        everybody = self.addresses
        eventually(lambda: all(n.up() == everybody - {n.address} for n in self))
