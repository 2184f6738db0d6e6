"""Faults at steps of moves: aimed, so that every fault meets every step in enough seeds.

A step is open from when the manager asks until it goes on. Each seed aims at a few cells of the
table of steps and faults, and strikes when such a step opens, or a little later. What is counted
is what happened while the step was open, not what was aimed at.
"""

from __future__ import annotations

from collections.abc import Callable

from thalweg.adapt.moves.messages.records import Ended, Stepped
from thalweg.adapt.moves.ways import WAYS
from thalweg.overlay.generator import Generator, seed_of
from thalweg.overlay.protocol import Address
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.world import World

MANAGER, UNION, SPLIT = "n1", "n2", "n3"
ROLES = (MANAGER, UNION, SPLIT)

FAULTS = (
    *("manager crash", "manager lost", "sender crash", "sender lost"),
    *("receiver crash", "receiver lost", "split crash", "union crash"),
    *("manager cut", "sender cut", "receiver cut", "split cut"),
    *("manager pause", "sender pause", "receiver pause", "split pause"),
)
STEPS = tuple((way.name, step.name) for way in WAYS.values() for step in way.steps)
CELLS = tuple((f"{way} {step}", fault) for way, step in STEPS for fault in FAULTS)
AIMS = (2, 4, 8)  # cells of a seed, drawn


class Strikes:
    def __init__(
        self, seed: int, latency_us: int, can_spare: Callable[[World, Host], bool]
    ) -> None:
        self._generator = Generator(seed_of(seed, "strikes"))
        self.aims = [self._generator.choice(CELLS) for _ in range(self._generator.choice(AIMS))]
        self.met: set[tuple[str, str]] = set()
        self.open: dict[str, Stepped] = {}  # by move
        self._latency_us = latency_us
        self._can_spare = can_spare
        self._since_us = self._until_us = 0

    @property
    def ways(self) -> tuple[str, ...]:
        """Those that must be used for the aims to be reached."""
        return tuple([step.split()[0] for step, _ in self.aims])

    def rage(self, since_us: int, until_us: int) -> None:
        self._since_us, self._until_us = since_us, until_us

    def ended(self, ended: Ended) -> None:
        self.open.pop(ended.move.id, None)

    def stepped(self, world: World, stepped: Stepped) -> None:
        self.open[stepped.move.id] = stepped
        g = self._generator
        for cell in self.aims:
            if cell[0] == _name(stepped) and g.chance(0.6):
                longest_us = SECOND_US if g.chance(0.2) else 2 * self._latency_us
                world.kernel.after(g.between(0, longest_us), self._strike, world, stepped, cell)

    def _strike(self, world: World, stepped: Stepped, cell: tuple[str, str]) -> None:
        now = self.open.get(stepped.move.id)
        if now is None or now.step != stepped.step:
            return  # it has gone on
        if not self._since_us <= world.now_us < self._until_us:
            return
        role, what = cell[1].split()
        m = stepped.move
        at = {"manager": MANAGER, "union": UNION, "split": SPLIT}
        address = at.get(role, m.sender if role == "sender" else m.receiver)
        host = world.hosts[address]
        if not host.is_up or (what != "cut" and not self._may_stop(world, host)):
            return
        if what == "cut":
            self._cut(world, host)
        elif what == "pause":
            self.pause(world, host)
        else:
            self.crash(world, host, lost=what == "lost")
        world.faults[f"{cell[1]} at a step"] += 1
        self.met.add(cell)

    def _may_stop(self, world: World, host: Host) -> bool:
        return host.address in ROLES or self._can_spare(world, host)

    def crash(self, world: World, host: Host, *, lost: bool) -> None:
        """Roles come back with their disks, but for the manager's; processors come back or not."""
        if host.address == MANAGER and lost:
            self.open.clear()  # nobody will say how these ended
        world.crash(host.address, lose_disk=lost)
        role = host.address in ROLES
        if role or lost or self._generator.chance(0.8):
            longest_us = (3 if role else 8) * SECOND_US
            back_us = self._generator.between(SECOND_US // 10, longest_us)
            world.kernel.after(back_us, self._return, world, host.address)

    def _return(self, world: World, address: Address) -> None:
        if not world.hosts[address].is_up and not world.hosts[address].gone:
            world.start(address)

    def pause(self, world: World, host: Host) -> None:
        if host.paused:
            return
        world.pause(host.address)
        lives = host.lives

        def resume() -> None:
            if host.lives == lives and host.paused:
                world.resume(host.address)

        world.kernel.after(self._generator.between(SECOND_US // 3, 7 * SECOND_US), resume)

    def _cut(self, world: World, host: Host) -> None:
        """One machine from all others, for a while; in place of any other partition."""
        weather = world.weather
        if weather is None:
            return
        weather.side = side = {host.index: 1}
        weather.cut = frozenset({(0, 1), (1, 0)})

        def reunite() -> None:
            if weather.side is side:
                weather.cut = frozenset()

        world.kernel.after(self._generator.between(SECOND_US, 9 * SECOND_US), reunite)


def _name(stepped: Stepped) -> str:
    return f"{stepped.move.way} {stepped.step}"
