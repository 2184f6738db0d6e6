"""Query distribution: one owner for each query in the end, and a fair share of load for each owner.

Never, not even in the storm: two owners of one epoch; two leases on one query at a time; a query
that was accepted and that nobody who runs knows any more.
"""

from __future__ import annotations

from thalweg.overlay.coordinators.tree import CoordinatorTree
from thalweg.overlay.distribution.entries import Epoch, Running
from thalweg.overlay.distribution.messages import (
    Accepted,
    Measured,
    SetCapability,
    Submit,
    Withdraw,
    Withdrawn,
)
from thalweg.overlay.distribution.protocol import QueryDistribution, Settings
from thalweg.overlay.distribution.state import State
from thalweg.overlay.generator import Generator, stable_hash
from thalweg.overlay.membership import Membership
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import Options
from thalweg.sim.scenarios.acquaintance import findable
from thalweg.sim.scenarios.coordinators import CoordinatorsScenario
from thalweg.sim.world import World

SUBSTREAMS = 8
SLACK = 0.25
ROUNDING = 1e-6


class DistributionScenario(CoordinatorsScenario):
    name = "distribution"
    about = "queries on providers by load and interest, each with one owner and one lease"
    most_nodes = 24
    fewest_nodes = 3
    act_every_us = SECOND_US
    suite_seeds = 12  # a run takes a third of a second, some take more than one
    check_every_us = SECOND_US // 2
    settle_within_us = 200 * SECOND_US

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        # Few queries of all weights, or many light ones, for which the bound can always be kept.
        self.at_once, self.heaviest = (1, 4) if options.seed % 2 else (6, 1)
        self.submitted = 0
        self.accepted: dict[str, Address] = {}  # name -> proxy
        self.withdrawn: dict[str, Address] = {}
        self.owner_of: dict[tuple[str, Epoch], Address] = {}  # all that ever were

    def build(self, address: Address) -> Stack:
        membership = Membership()
        tree = CoordinatorTree(membership, self.settings)
        return Stack([membership, tree, self.distribution(membership, tree, address)])

    def distribution(
        self, membership: Membership, tree: CoordinatorTree, address: Address
    ) -> QueryDistribution:
        capability = float(1 << stable_hash(address) % 3)
        return QueryDistribution(membership, tree, Settings(capability, SLACK))

    # --- the workload ---

    def act(self, world: World) -> None:
        host = self.generator.choice(world.up())
        deed = self.generator.below(20)
        if deed < 11 or not self.accepted:
            for _ in range(self.at_once):
                self._submit(world, host.address, self._weight())
        elif deed < 13:
            name = self.generator.choice(list(self.accepted))
            proxy = world.hosts[self.accepted[name]]
            if proxy.is_up and name in at(proxy).guards.kept and not proxy.waiting:
                world.call(proxy.address, self.name, Withdraw(name))
        elif deed < 16:
            loads = [(n, self._weight()) for n in at(host).holdings.owned]
            world.call(host.address, self.name, Measured(loads=tuple(loads)))
        elif deed < 19:
            bps = float(self.generator.between(1, 100))
            rates = ((self.generator.below(SUBSTREAMS), bps),)
            world.call(host.address, self.name, Measured(rates_bps=rates))
        elif self.capable(world) > 2 or at(host).capability == 0:
            capability = 0.0 if at(host).capability else at(host).settings.capability
            world.call(host.address, self.name, SetCapability(capability))

    def _weight(self) -> float:
        return self.heaviest * (0.25 + 0.75 * self.generator.unit())

    def capable(self, world: World) -> int:
        return sum(at(h).capability > 0 for h in world.up())

    def _submit(self, world: World, proxy: Address, weight: float) -> str:
        self.submitted += 1
        title = f"q{self.submitted}"
        wanted = self.generator.sample(range(SUBSTREAMS), self.generator.between(1, 3))
        world.call(proxy, self.name, Submit(title, "SELECT *", tuple(sorted(wanted)), 1.0, weight))
        return title

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        match value:
            case Accepted(_, name):
                self.accepted[name] = host.address
            case Withdrawn(name):
                self.withdrawn[name] = self.accepted.pop(name)

    def can_spare(self, world: World, host: Host) -> bool:
        """As for the tree; and every query is safe with another node that runs."""
        if not super().can_spare(world, host):
            return False
        highest: dict[str, Epoch] = {}
        for node in map(at, world.up()):
            for name, owned in node.holdings.owned.items():
                highest[name] = max(owned.epoch, highest.get(name, owned.epoch))
        rest = [h for h in world.up() if h is not host]
        return all(
            any(is_safe_with(h, name, highest.get(name)) for h in rest) for name in self.accepted
        )

    # --- what was promised ---

    def broken(self, world: World) -> str | None:
        return (
            super().broken(world)
            or self._two_owners(world)
            or self._two_leases(world)
            or self._forgotten(world)
        )

    def _two_owners(self, world: World) -> str | None:
        for host in world.up():
            for name, owned in at(host).holdings.owned.items():
                owner = self.owner_of.setdefault((name, owned.epoch), host.address)
                if owner != host.address:
                    return f"{owner} and {host.address} own {name} in one epoch, {owned.epoch}"
        return None

    def _two_leases(self, world: World) -> str | None:
        holders: dict[str, Address] = {}
        for host in world.up():
            for name in at(host).holdings.delivers(host.clock.local_us(world.now_us)):
                if name in holders:
                    return f"{holders[name]} and {host.address} both hold a lease on {name}"
                holders[name] = host.address
        return None

    def _forgotten(self, world: World) -> str | None:
        everyone = [at(h) for h in world.up()]
        for name in self.accepted:
            if not any(d.knows(name) for d in everyone):
                return f"{name} was accepted, and nobody knows it any more"
        return None

    def unsettled(self, world: World) -> str | None:
        hosts = findable(world)
        if (problem := super().unsettled(world)) is not None:
            return problem
        return self._misowned(world, hosts) or overloaded([at(h) for h in hosts])

    def _misowned(self, world: World, hosts: list[Host]) -> str | None:
        owners: dict[str, list[Host]] = {}
        for host in hosts:
            for name in at(host).holdings.owned:
                owners.setdefault(name, []).append(host)
        by_address = {h.address: h for h in hosts}
        somebody_takes_queries = any(at(h).capability > 0 for h in hosts)
        for name, proxy in self.accepted.items():
            if not any(at(h).knows(name) for h in hosts):
                continue  # only somebody knows it who has lost all contact
            here = owners.get(name, [])
            if not here and not somebody_takes_queries:
                continue  # it waits: who is left wants to leave
            if len(here) != 1:
                return f"{name} is owned by {', '.join(h.address for h in here) or 'nobody'}"
            now_us = here[0].clock.local_us(world.now_us)
            if proxy in by_address and name not in at(here[0]).holdings.delivers(now_us):
                return f"{here[0].address} has no lease on {name} of {proxy}"
            kept = at(by_address[proxy]).guards.kept if proxy in by_address else {}
            if name in kept and kept[name].owner != here[0].address:
                return f"{proxy} takes {kept[name].owner} for the owner of {name}"
        for name, proxy in self.withdrawn.items():
            host = by_address.get(proxy)
            if name in owners and host is not None and name in at(host).guards.withdrawn:
                return f"{owners[name][0].address} still runs {name}, which was withdrawn"
        return None

    # --- for scripts ---

    def describe(self, host: Host) -> str:
        node = at(host)
        owned = sorted(node.holdings.owned.items())
        told = [f"{_title(n)} {_spell(o.epoch)} ({o.weight:g})" for n, o in owned]
        share = f"capability {node.capability:g}, load {load_of(node):g}"
        return f"{share}; " + (", ".join(told) or "nothing")

    def command(self, world: World, verb: str, words: list[str]) -> list[str]:
        match verb, words:
            case "submit", [address, weight]:
                return [self._submit(world, address, float(weight))]
            case "withdraw", [title]:
                for name, proxy in list(self.accepted.items()):
                    if _title(name) == title:
                        world.call(proxy, self.name, Withdraw(name))
                return []
            case "capability", [address, capability]:
                world.call(address, self.name, SetCapability(float(capability)))
                return []
            case "load", [title, weight]:
                for host in world.up():
                    names = [n for n in at(host).holdings.owned if _title(n) == title]
                    loads = tuple((n, float(weight)) for n in names)
                    world.call(host.address, self.name, Measured(loads=loads))
                return []
        return super().command(world, verb, words)


def _title(name: str) -> str:
    return name.partition("@")[0]


def _spell(epoch: Epoch) -> str:
    return f"below epoch {epoch.number + 1}" if epoch.rescue else f"in epoch {epoch.number}"


def is_safe_with(host: Host, name: str, highest: Epoch | None) -> bool:
    """Whether a node knows a query and is not about to let go of it.

    It lets go of what it hands over, of an epoch that is not the highest, and of orphans, as soon
    as the other has said that it has them; who says so, and stops before anybody else hears of the
    query, takes it along. Such a word may be under way.
    """
    node = at(host)
    owned = node.holdings.owned.get(name)
    reported = node.reporter.ledger.entries.get(f"q {name}")
    return (
        name in node.guards.kept
        or (owned is not None and owned.epoch == highest and name not in node.granter.jobs)
        or (isinstance(reported, Running) and reported.owner != host.address)
    )


def at(host: Host) -> State:
    assert host.stack is not None
    found = host.stack["distribution"]
    assert isinstance(found, QueryDistribution)
    return found.state


def load_of(node: State) -> float:
    return sum(owned.weight for owned in node.holdings.owned.values())


def overloaded(nodes: list[State]) -> str | None:
    """The bound where it can surely be kept; else within the weight of one query.

    Whether loads of any weights fit is a matter of packing. They always do where the slack of the
    smallest share has room for the heaviest query.
    """
    capability = sum(n.capability for n in nodes)
    if capability <= 0:
        return None
    fair = sum(load_of(n) for n in nodes) / capability
    spare = 0.0 if always_fits(nodes) else heaviest_of(nodes)
    for node in nodes:
        load, most = load_of(node), (1 + SLACK) * fair * node.capability + spare
        if node.capability <= 0 and load > 0:
            return f"a provider that wants to leave still has a load of {load:g}"
        if load > most * (1 + ROUNDING):
            return f"a provider has a load of {load:g}, {most:g} is the most"
    return None


def heaviest_of(nodes: list[State]) -> float:
    return max((o.weight for n in nodes for o in n.holdings.owned.values()), default=0.0)


def always_fits(nodes: list[State]) -> bool:
    fair = sum(map(load_of, nodes)) / sum(n.capability for n in nodes)
    smallest = min(n.capability for n in nodes if n.capability > 0)
    return SLACK * fair * smallest >= heaviest_of(nodes)
