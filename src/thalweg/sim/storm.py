"""The bad phase of a run: faults happen to links and machines, until the storm is healed.

Each kind of fault in the options has its own rhythm. Victims are drawn among those that the
scenario can spare, so that a run never leaves the ground that the protocol's promise covers.
"""

from __future__ import annotations

from collections.abc import Callable

from thalweg.overlay.generator import Generator, seed_of
from thalweg.overlay.protocol import Address
from thalweg.sim.host import Clock, Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import Options
from thalweg.sim.scenario import Scenario
from thalweg.sim.weather import Weather
from thalweg.sim.world import World

MOST_OFFSET_US = 5 * SECOND_US
MOST_DRIFT_PPM = 20_000  # 2 %: far worse than quartz, so that a run of seconds shows it


def skewed_clock(options: Options, address: Address) -> Clock:
    """The clock of a machine in this run; the same each time it is asked for."""
    if not options.skew:
        return Clock()
    generator = Generator(seed_of(options.seed, "clock", address))
    offset_us = generator.between(0, MOST_OFFSET_US)
    return Clock(offset_us, generator.between(-MOST_DRIFT_PPM, MOST_DRIFT_PPM))


class Storm:
    def __init__(self, world: World, scenario: Scenario, options: Options) -> None:
        self._world = world
        self._scenario = scenario
        self._options = options
        self._generator = Generator(seed_of(options.seed, "storm"))
        self._happenings: dict[str, Callable[[], None]] = {
            "clog": self._clog,
            "partition": lambda: self._part("partition", both_ways=True),
            "one-way partition": lambda: self._part("one-way partition", both_ways=False),
            "crash": self._crash,
            "pause": self._pause,
            "slow": self._slow,
            "join": self._join,
            "leave": self._leave,
        }
        self._raging = True
        self._newcomers = 0
        self._partitions = 0
        self._to_return: dict[Address, str] = {}  # crashed -> how it restarts
        weather_generator = Generator(seed_of(options.seed, "weather"))
        self._weather = world.weather = Weather(weather_generator, options.rates)
        for kind, gap_us in options.mean_gap_us.items():
            world.kernel.after(self._gap(gap_us), self._happen, kind, gap_us)

    def heal(self) -> None:
        """All links are well, nobody stands still or is slow, and who was to return has."""
        self._raging = False
        self._world.weather = None
        for host in self._world.up():
            host.step_cost_us = 0
            if host.paused:
                self._world.resume(host.address)
        for address in list(self._to_return):
            self._restart(address)

    def _happen(self, kind: str, gap_us: int) -> None:
        if self._raging:
            self._happenings[kind]()
            self._world.kernel.after(self._gap(gap_us), self._happen, kind, gap_us)

    def _gap(self, mean_us: int) -> int:
        return self._generator.between(mean_us // 2, mean_us + mean_us // 2)

    def _seconds(self, low: float, high: float) -> int:
        return self._generator.between(int(low * SECOND_US), int(high * SECOND_US))

    def _victim(self, fit: Callable[[Host], bool]) -> Host | None:
        candidates = [h for h in self._world.up() if fit(h)]
        return self._generator.choice(candidates) if candidates else None

    # --- links ---

    def _clog(self) -> None:
        """A few links hold back what they carry, each for a while."""
        indexes = [h.index for h in self._world.up()]
        if len(indexes) < 2:
            return
        self._world.faults["clog"] += 1
        for _ in range(self._generator.between(1, len(indexes))):
            source, target = self._generator.sample(indexes, 2)
            until_us = self._world.now_us + self._seconds(0.5, 4)
            self._weather.clogged_until_us[source, target] = until_us

    def _part(self, kind: str, *, both_ways: bool) -> None:
        """Two sides, drawn machine by machine; a new partition replaces the old one."""
        indexes = [h.index for h in self._world.hosts.values()]
        self._world.faults[kind] += 1
        self._weather.side = {i: self._generator.below(2) for i in indexes}
        self._weather.cut = frozenset({(0, 1), (1, 0)} if both_ways else {(0, 1)})
        self._partitions += 1
        self._world.kernel.after(self._seconds(2, 15), self._reunite, self._partitions)

    def _reunite(self, partition: int) -> None:
        if self._partitions == partition:
            self._weather.cut = frozenset()

    # --- machines ---

    def _crash(self) -> None:
        """Of one machine; or of a few at once, as when a rack loses its power."""
        for _ in range(self._generator.choice((1, 1, 2, 3))):
            host = self._victim(lambda h: self._scenario.can_spare(self._world, h))
            if host is not None:
                self._crash_host(host)

    def _crash_soon(self, host: Host) -> None:
        """A start is the most delicate time: half of the newcomers don't live long."""
        if "crash" in self._options.mean_gap_us and self._generator.chance(0.5):
            self._world.kernel.after(self._seconds(0, 2), self._crash_young, host, host.lives)

    def _crash_young(self, host: Host, life: int) -> None:
        alive = host.is_up and host.lives == life
        if self._raging and alive and self._scenario.can_spare(self._world, host):
            self._crash_host(host)

    def _crash_host(self, host: Host) -> None:
        self._world.faults["crash"] += 1
        how = self._generator.choice(("", *self._options.restarts))
        self._world.crash(host.address, lose_disk=how == "restart lost")
        if how:
            self._to_return[host.address] = how
            self._world.kernel.after(self._seconds(0.1, 12), self._restart, host.address)

    def _restart(self, address: Address) -> None:
        how = self._to_return.pop(address, None)
        if how is not None:
            self._world.faults[how] += 1
            host = self._world.start(address)
            if how == "restart lost":
                self._scenario.admit(self._world, address)
            self._crash_soon(host)

    def _pause(self) -> None:
        host = self._victim(lambda h: not h.paused and self._scenario.can_spare(self._world, h))
        if host is not None:
            self._world.faults["pause"] += 1
            self._world.pause(host.address)
            self._world.kernel.after(self._seconds(0.3, 8), self._resume, host, host.lives)

    def _resume(self, host: Host, life: int) -> None:
        if host.lives == life and host.paused:
            self._world.resume(host.address)

    def _slow(self) -> None:
        host = self._victim(lambda h: not h.step_cost_us)
        if host is not None:
            self._world.faults["slow"] += 1
            self._world.slow_down(host.address, self._generator.between(1_000, 60_000))
            self._world.kernel.after(self._seconds(2, 10), self._speed_up, host)

    def _speed_up(self, host: Host) -> None:
        host.step_cost_us = 0

    def _join(self) -> None:
        self._newcomers += 1
        address = f"j{self._newcomers}"
        self._world.faults["join"] += 1
        host = enter(self._world, self._scenario, self._options, address)
        self._scenario.admit(self._world, address)
        self._crash_soon(host)

    def _leave(self) -> None:
        host = self._victim(
            lambda h: not h.paused and not h.busy and self._scenario.can_spare(self._world, h)
        )
        if host is not None:
            self._world.faults["leave"] += 1
            self._world.leave(host.address)


def enter(world: World, scenario: Scenario, options: Options, address: Address) -> Host:
    """A machine of this run is set up and switched on."""
    clock = skewed_clock(options, address)
    if clock != Clock():
        world.faults["skew"] += 1
    world.add(address, clock)
    return world.start(address)
