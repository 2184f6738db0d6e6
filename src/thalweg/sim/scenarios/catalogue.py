"""Catalogue: whatever happened, all know the same definitions, and nothing acknowledged is lost."""

from __future__ import annotations

from thalweg.overlay.catalogue import (
    Catalogue,
    CatalogueSettings,
    Changed,
    Drop,
    Entry,
    Forget,
    Put,
)
from thalweg.overlay.catalogue.entry import Key
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import Options
from thalweg.sim.scenario import Scenario, contact
from thalweg.sim.scenarios.acquaintance import are_acquainted, findable
from thalweg.sim.scenarios.membership import members_at
from thalweg.sim.world import World

NAMES = ("bids", "asks", "hot", "cold")  # few, so that many meet
Version = tuple[Key, int, int]  # key, version, disk


class CatalogueScenario(Scenario):
    name = "catalogue"
    about = "definitions of streams and queries, each written by its owner and known everywhere"
    fewest_nodes = 2
    most_nodes = 10
    storm_us = 20 * SECOND_US
    settle_within_us = 90 * SECOND_US
    act_every_us = SECOND_US // 2
    suite_seeds = 25
    settings = CatalogueSettings()

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.texts = 0
        self.written: dict[Version, Entry] = {}  # all that owners ever wrote
        # What each owner acknowledged last, while it has its disk: text, or None if dropped.
        self.acknowledged: dict[Key, str | None] = {}
        self.retired: dict[str, Address] = {}  # texts that were replaced or dropped -> owner
        self.forgotten: set[Address] = set()
        self.asked: Put | Drop | None = None  # what is being asked, while it is
        self.known: dict[tuple[Address, Key], Entry] = {}  # what a host knew when last looked at
        self.problem: str | None = None

    def build(self, address: Address) -> Stack:
        membership = Membership()
        return Stack([membership, self.catalogue(membership)])

    def catalogue(self, membership: Membership) -> Catalogue:
        return Catalogue(membership, self.settings)

    def admit(self, world: World, address: Address) -> None:
        """New, or back with an empty disk: what it acknowledged before is its word no longer."""
        self.acknowledged = {k: t for k, t in self.acknowledged.items() if k[1] != address}
        self.retired = {t: a for t, a in self.retired.items() if a != address}
        self.known = {(a, k): e for (a, k), e in self.known.items() if a != address}
        world.call(address, "membership", Join(tuple(contact(world, self.generator, address))))
        # As start-up scripts do, before the node has met anybody. (A stage has no workload.)
        if self.options.nodes and self.generator.chance(0.5):
            names = sorted({k[0] for k, _, _ in self.written if k[1] == address}) or NAMES
            self.put(world, address, self.generator.choice(names))

    # --- the workload ---

    def act(self, world: World) -> None:
        """Somebody defines, changes or drops something."""
        ready = [h for h in world.up() if not h.paused and not h.busy]
        if not ready:
            return
        host = self.generator.choice(ready)
        entries = catalogue_at(host).entries()
        own = [e for e in entries if e.owner == host.address]
        if self.generator.chance(0.1):
            away = sorted({e.owner for e in entries if members_at(host).is_down(e.owner)})
            if away:
                self.forget(world, host.address, self.generator.choice(away))
        elif own and self.generator.chance(0.4):
            entry = self.generator.choice(own)
            self.ask(world, host.address, Drop(entry.name))
        elif own and self.generator.chance(0.3):
            self.put(world, host.address, self.generator.choice(own).name)
        else:
            self.put(world, host.address, self.generator.choice(NAMES))

    def forget(self, world: World, address: Address, owner: Address) -> None:
        """Somebody takes a node for gone for good, rightly or not."""
        self.forgotten.add(owner)
        world.call(address, "catalogue", Forget(owner))

    def put(self, world: World, address: Address, name: str) -> None:
        self.texts += 1
        self.ask(world, address, Put(name, "stream", f"text {self.texts}"))

    def ask(self, world: World, address: Address, request: Put | Drop) -> None:
        self.asked = request
        world.call(address, "catalogue", request)
        self.asked = None

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        if not isinstance(value, Changed) or value.entry.owner != host.address:
            return
        entry = value.entry
        version = (entry.key, *entry.rank)
        if version in self.written:
            return  # learned again after a lost disk
        self.written[version] = entry
        if not entry.dropped and entry.text in self.retired:
            self.problem = f"{host.address} writes {entry.text!r} again, which was gone"
        asked = self.asked
        if asked is None or asked.name != entry.name:
            return  # renamed, or written once more
        before = self.acknowledged.get(entry.key)
        if before is not None:
            self.retired[before] = host.address
        self.acknowledged[entry.key] = asked.text if isinstance(asked, Put) else None

    def can_spare(self, world: World, host: Host) -> bool:
        return super().can_spare(world, host) and are_acquainted(world, host)

    # --- promises ---

    def broken(self, world: World) -> str | None:
        if self.problem is not None:
            return self.problem
        for host in world.up():
            catalogue = catalogue_at(host)
            for entry in catalogue.table:
                if entry.is_grave and entry.owner not in self.forgotten:
                    return f"{host.address} has buried {entry.owner}, which nobody has forgotten"
                if not entry.is_grave and self.written.get((entry.key, *entry.rank)) != entry:
                    return f"{host.address} has {entry}, which its owner never wrote"
                known = self.known.get((host.address, entry.key))
                if known is not None and known.rank > entry.rank:
                    return f"{host.address} went back from {known} to {entry}"
                self.known[host.address, entry.key] = entry
            if problem := misnamed(catalogue):
                return f"{host.address}: {problem}"
        for (address, key), entry in self.known.items():
            host = world.hosts[address]
            if host.is_up and catalogue_at(host).table.get(key) is None:
                return f"{address} has forgotten {entry}"
        return None

    def unsettled(self, world: World) -> str | None:
        hosts = findable(world)
        best: dict[Key, Entry] = {}
        for host in hosts:
            for entry in catalogue_at(host).table:
                if entry.key not in best or entry.rank > best[entry.key].rank:
                    best[entry.key] = entry
        names = [catalogue_at(h).names() for h in hosts]
        for host, its_names in zip(hosts, names, strict=True):
            table = catalogue_at(host).table
            for key, entry in best.items():
                if table.get(key) != entry:
                    return f"{host.address} has {table.get(key)}, not yet {entry}"
            if its_names != names[0]:
                return f"{host.address} and {hosts[0].address} call things by different names"
        there = {h.address for h in hosts}
        standing = {e.key: e for e in catalogue_at(hosts[0]).entries()} if hosts else {}
        for key, text in self.acknowledged.items():
            found = standing.get(key)
            if key[1] in there and text != (None if found is None else found.text):
                return f"{key[1]} acknowledged {text!r} as {key[0]}, and all have {found}"
        return undecided(list(standing.values()), there)

    # --- for scripts ---

    def describe(self, host: Host) -> str:
        names = catalogue_at(host).names()
        return "; ".join(f"{name}: {e.text}" for name, e in names.items()) or "nothing"

    def command(self, world: World, verb: str, words: list[str]) -> list[str]:
        match verb, words:
            case "define", [address, name, *text]:
                self.ask(world, address, Put(name, "stream", " ".join(text)))
                return []
            case "undefine", [address, name]:
                self.ask(world, address, Drop(name))
                return []
            case "forget", [address, owner]:
                self.forget(world, address, owner)
                return []
        return super().command(world, verb, words)


def catalogue_at(host: Host) -> Catalogue:
    assert host.stack is not None
    found = host.stack["catalogue"]
    assert isinstance(found, Catalogue)
    return found


def misnamed(catalogue: Catalogue) -> str | None:
    """A living entry without a name, with two, or with one that is another's."""
    names = catalogue.names()
    named = sorted(e.key for e in names.values())
    if named != [e.key for e in catalogue.entries()]:
        return f"names for {named}, and entries {catalogue.entries()}"
    for name, entry in names.items():
        if name not in (entry.name, entry.full_name) or (entry.renamed and name == entry.name):
            return f"{entry} is called {name}"
    return None


def undecided(standing: list[Entry], there: set[Address]) -> str | None:
    """Two entries that both claim a plain name, though the owner of the later one runs."""
    claims: dict[str, list[Entry]] = {}
    for entry in standing:
        if not entry.renamed:
            claims.setdefault(entry.name, []).append(entry)
    for entries in claims.values():
        first, *others = sorted(entries, key=lambda e: e.seniority)
        for other in others:
            if other.owner in there:
                return f"{other.owner} has not given way to {first.owner} for {first.name}"
    return None
