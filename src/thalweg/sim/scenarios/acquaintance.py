"""Whether all who run can find each other: no protocol finds those whom nobody knows any more."""

from __future__ import annotations

from thalweg.overlay.protocol import Address
from thalweg.sim.host import Host
from thalweg.sim.scenarios.membership import members_at
from thalweg.sim.world import World


def are_acquainted(world: World, without: Host) -> bool:
    """One network of acquaintances remains when this host stops.

    A newcomer whose contacts all stop before it has met anybody else is lost for good; such a
    crash is beyond what any promise covers.
    """
    rest = [h for h in world.up() if h is not without]
    known = _acquaintances(rest)
    met, to_do = set(), list(known)[:1]
    while to_do:
        address = to_do.pop()
        if address not in met:
            met.add(address)
            to_do += known[address]
    return len(met) == len(rest)


def findable(world: World) -> list[Host]:
    """Those who run, but for those whom nobody knows and who know nobody.

    The latter crashed when they had hardly joined, and all whom they had met were gone when they
    came back: an operator has to name them new contacts.
    """
    known = _acquaintances(world.up())
    return [h for h in world.up() if known[h.address] or len(known) == 1]


def _acquaintances(hosts: list[Host]) -> dict[Address, list[Address]]:
    """Who remembers whom, both ways."""
    known: dict[Address, list[Address]] = {h.address: [] for h in hosts}
    for host in hosts:
        for other in members_at(host).view.remembered():
            if other in known:
                known[host.address].append(other)
                known[other].append(host.address)
    return known
