"""Where a script plays: a world of its own, and the verbs that move it.

Nothing goes wrong by itself here. What happens is what the script says, so that a rare course of
events can be told step by step.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from thalweg.overlay.generator import Generator, seed_of
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import HAPPENINGS, MESSAGE_FAULTS, RESTARTS, Options
from thalweg.sim.scenario import Scenario
from thalweg.sim.scenarios.registry import UnknownScenario, scenario_named
from thalweg.sim.trace import Trace
from thalweg.sim.weather import Rates, Weather
from thalweg.sim.world import World

_UNITS_US = {"us": 1, "ms": 1_000, "s": SECOND_US, "min": 60 * SECOND_US}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|min)")


class BadCommand(ValueError):
    """What is wrong with a command, and how it should look."""


def duration_us(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise BadCommand(f"{text!r} is no duration; write 250ms, 10s or 2min")
    return round(float(found[1]) * _UNITS_US[found[2]])


class Stage:
    def __init__(self) -> None:
        self._world: World | None = None
        self._scenario: Scenario | None = None
        self._watching = "nothing"
        self._lines: list[str] = []
        self._told: Counter[tuple[str, str]] = Counter()  # messages already reported
        self._verbs: dict[str, Callable[[list[str]], None]] = {
            "start": lambda words: self._each(words, self._start),
            "restart": lambda words: self._each(words, lambda h: self._on.start(h)),
            "crash": lambda words: self._each(words, lambda h: self._on.crash(h)),
            "wipe": lambda words: self._each(words, lambda h: self._on.crash(h, lose_disk=True)),
            "leave": lambda words: self._each(words, lambda h: self._on.leave(h)),
            "pause": lambda words: self._each(words, lambda h: self._on.pause(h)),
            "resume": lambda words: self._each(words, lambda h: self._on.resume(h)),
            "slow": self._slow,
            "partition": lambda words: self._part(words, "|"),
            "cut": lambda words: self._part(words, ">"),
            "weather": self._set_weather,
            "heal": self._heal,
            "run": self._run,
            "watch": self._watch,
            "show": self._show,
            "messages": self._messages,
            "check": self._check,
        }

    def do(self, words: list[str]) -> list[str]:
        """Carry out one command; gives what it prints."""
        self._lines = []
        verb, *rest = words
        if verb == "scenario":
            self._open(rest)
        elif self._world is None:
            raise BadCommand("begin with: scenario NAME [seed=N] [latency=10ms]")
        elif verb in self._verbs:
            try:
                self._verbs[verb](rest)
            except ValueError as error:
                raise BadCommand(str(error)) from None
        else:
            self._special(verb, rest)
        return self._lines

    # --- the world ---

    @property
    def _on(self) -> World:
        assert self._world is not None
        return self._world

    @property
    def _play(self) -> Scenario:
        assert self._scenario is not None
        return self._scenario

    def _open(self, words: list[str]) -> None:
        if not words:
            raise BadCommand("scenario NAME [seed=N] [latency=10ms]")
        try:
            kind = scenario_named(words[0])
        except UnknownScenario as error:
            raise BadCommand(str(error)) from None
        settings = _settings(words[1:], ("seed", "latency"))
        seed = int(settings.get("seed", "1"))
        latency_us = duration_us(settings.get("latency", "10ms"))
        # Whatever may happen in a storm may happen in a script.
        options = Options(
            seed, 0, latency_us, Rates(), dict.fromkeys(HAPPENINGS, 0), RESTARTS, False
        )
        self._scenario = kind(options, Generator(seed_of(seed, "workload")))
        self._world = World(
            self._scenario.build,
            seed=seed,
            network=self._scenario.network(),
            trace=Trace(self._traced),
            on_deliver=self._delivered,
        )

    def _traced(self, line: str) -> None:
        if self._watching == "events":
            self._lines.append(line.strip())

    def _delivered(self, host: Host, protocol: str, value: object) -> None:
        self._play.delivered(host, protocol, value)
        if self._watching in ("deliveries", "events"):
            now_s = self._on.now_us / SECOND_US
            self._lines.append(f"{now_s:.6f}s {host.address:>6} {protocol} delivers {value!r}")

    # --- verbs ---

    def _each(self, words: list[str], act: Callable[[str], object]) -> None:
        if not words:
            raise BadCommand("which node?")
        for address in words:
            act(address)

    def _start(self, address: str) -> None:
        self._on.start(address)
        self._play.admit(self._on, address)

    def _slow(self, words: list[str]) -> None:
        if len(words) != 2:
            raise BadCommand("slow NODE DURATION, the time that each step takes")
        self._on.slow_down(words[0], duration_us(words[1]))

    def _part(self, words: list[str], mark: str) -> None:
        if words.count(mark) != 1:
            verb = "partition" if mark == "|" else "cut"
            raise BadCommand(f"{verb} NODE … {mark} NODE …; the rest is with the first side")
        behind = words[words.index(mark) + 1 :]
        weather = self._weather()
        weather.side = {self._on.host(a).index: 1 for a in behind}
        weather.cut = frozenset({(0, 1), (1, 0)} if mark == "|" else {(0, 1)})

    def _set_weather(self, words: list[str]) -> None:
        settings = _settings(words, tuple(MESSAGE_FAULTS))
        shares = {name: float(value.rstrip("%")) / 100 for name, value in settings.items()}
        self._weather().rates = Rates.of(shares)

    def _weather(self) -> Weather:
        if self._on.weather is None:
            self._on.weather = Weather(Generator(seed_of(self._on.seed, "weather")))
        return self._on.weather

    def _heal(self, words: list[str]) -> None:
        self._on.weather = None

    def _run(self, words: list[str]) -> None:
        if len(words) != 1:
            raise BadCommand("run DURATION")
        self._on.run_for(duration_us(words[0]))

    def _watch(self, words: list[str]) -> None:
        if words not in (["nothing"], ["deliveries"], ["events"]):
            raise BadCommand("watch nothing, watch deliveries, or watch events")
        self._watching = words[0]

    def _show(self, words: list[str]) -> None:
        for address in words or self._on.hosts:
            host = self._on.host(address)
            state = "gone" if host.gone else "down"
            self._lines.append(f"{address}: {self._play.describe(host) if host.is_up else state}")

    def _messages(self, words: list[str]) -> None:
        new = self._on.sent - self._told
        self._told = Counter(self._on.sent)
        self._lines += [f"{name} {kind}: {new[name, kind]}" for name, kind in sorted(new)]

    def _check(self, words: list[str]) -> None:
        """Whether all is as promised: now, or within a duration."""
        end_us = self._on.now_us + (duration_us(words[0]) if words else 0)
        while True:
            broken, missing = self._play.broken(self._on), self._play.unsettled(self._on)
            if broken is not None or missing is None or self._on.now_us >= end_us:
                self._lines.append(broken or missing or "ok")
                return
            self._on.run_for(min(self._play.check_every_us, end_us - self._on.now_us))

    def _special(self, verb: str, words: list[str]) -> None:
        try:
            self._lines += self._play.command(self._on, verb, words)
        except NotImplementedError:
            known = ", ".join(("scenario", *self._verbs))
            raise BadCommand(f"there is no command {verb!r}; there are {known}") from None


def _settings(words: list[str], known: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for word in words:
        name, mark, value = word.partition("=")
        if not mark or name not in known:
            raise BadCommand(f"{word!r}: expected {', '.join(f'{k}=…' for k in known)}")
        found[name] = value
    return found
