"""The shape of a scenario: which protocols, which faults, what may never be, what must be at last.

A scenario is a class; a run makes one instance of it, which may keep what it saw. A run has two
phases. In the storm, faults happen and `broken` must stay silent. Then the network heals, and
within `settle_within_us` `unsettled` must fall silent, and stay so.
"""

from __future__ import annotations

from typing import ClassVar

from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import Address
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.networks.model import Network
from thalweg.sim.networks.uniform import UniformNetwork
from thalweg.sim.options import FAULTS, Options
from thalweg.sim.world import World


class Scenario:
    name: ClassVar[str]
    about: ClassVar[str]  # one line, for `thalweg simulate list`
    faults: ClassVar[tuple[str, ...]] = FAULTS  # those that its promise covers
    fewest_nodes: ClassVar[int] = 3
    most_nodes: ClassVar[int] = 12
    warm_up_us: ClassVar[int] = 5 * SECOND_US  # fine weather, before the storm
    storm_us: ClassVar[int] = 20 * SECOND_US
    settle_within_us: ClassVar[int] = 60 * SECOND_US
    stay_us: ClassVar[int] = 5 * SECOND_US  # how long it must stay settled
    check_every_us: ClassVar[int] = SECOND_US // 2
    act_every_us: ClassVar[int] = 2 * SECOND_US  # the mean gap of the workload
    suite_seeds: ClassVar[int] = 25  # how many the test suite runs
    cells: ClassVar[tuple[tuple[str, str], ...]] = ()  # (step, fault): what many seeds should meet

    def __init__(self, options: Options, generator: Generator) -> None:
        self.options = options
        self.generator = generator  # the scenario's own, for its workload
        self.met: set[tuple[str, str]] = set()  # those of `cells` that this run has met

    @classmethod
    def faults_of(cls, seed: int) -> tuple[str, ...]:
        """Those that a seed may draw from: for a promise that holds under some of them only."""
        return cls.faults

    def network(self) -> Network:
        return UniformNetwork(self.options.latency_us)

    def build(self, address: Address) -> Stack:
        """The protocols of a node, new and empty: also after each restart."""
        raise NotImplementedError

    def admit(self, world: World, address: Address) -> None:
        """Introduce a node that knows nobody, as its configuration would."""
        raise NotImplementedError

    def act(self, world: World) -> None:
        """One deed of the workload; warm-up and storm only."""

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        """What a protocol handed to the application."""

    def can_spare(self, world: World, host: Host) -> bool:
        """Whether the promise still holds if this host stops now."""
        return len(world.up()) > 2

    def broken(self, world: World) -> str | None:
        """What is wrong that may never be, not even in the storm; None if all is well."""
        return None

    def unsettled(self, world: World) -> str | None:
        """What is still missing after the storm; None once all is as promised."""
        raise NotImplementedError

    # --- for scripts ---

    def describe(self, host: Host) -> str:
        """The state of a running node, in a line."""
        return "up"

    def command(self, world: World, verb: str, words: list[str]) -> list[str]:
        """A command of this scenario's own; gives what it prints."""
        raise NotImplementedError


def contact(world: World, generator: Generator, address: Address) -> list[Address]:
    """Up to three running nodes that a newcomer's configuration might name."""
    others = [h.address for h in world.up() if h.address != address]
    return generator.sample(others, 3)
