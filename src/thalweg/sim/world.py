"""The simulated driver: hosts, each with its stack of protocols, on a network.

It carries out effects, and turns what happens into events, as the live driver does between
processes; the protocols can't tell the difference. One seed, one run: all that happens is a
function of the seed, the network, and the calls made from outside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from thalweg.overlay.driving import Timer, carry_out
from thalweg.overlay.protocol import (
    Address,
    Call,
    Event,
    Message,
    Persist,
    Receive,
    TimerFired,
)
from thalweg.overlay.stack import Stack
from thalweg.sim.host import TRUE_CLOCK, Clock, Host
from thalweg.sim.kernel import Kernel
from thalweg.sim.networks.model import Network
from thalweg.sim.networks.uniform import UniformNetwork
from thalweg.sim.trace import Trace
from thalweg.sim.weather import ON_TIME, Weather

HEADER_BYTES = 48  # addresses, ports, lengths and the protocol's name, beside the message

_size = msgspec.msgpack.Encoder().encode


class World:
    def __init__(
        self,
        build: Callable[[Address], Stack],
        *,
        seed: int = 0,
        network: Network | None = None,
        trace: Trace | None = None,
        on_deliver: Callable[[Host, str, object], None] | None = None,
    ) -> None:
        self.kernel = Kernel()
        self.network = network or UniformNetwork()
        self._has_queues = self.network.has_queues
        self.weather: Weather | None = None  # None: fine
        self.hosts: dict[Address, Host] = {}
        self.sent: Counter[tuple[str, str]] = Counter()  # (protocol, message) -> how many
        self.faults: Counter[str] = Counter()
        self.struck: set[tuple[str, str]] = set()  # (message, fault): which fault met which
        self.steps = 0
        self.seed = seed
        self._build = build
        self._trace = trace
        self._on_deliver = on_deliver

    # --- what people and scenarios do ---

    @property
    def now_us(self) -> int:
        return self.kernel.now_us

    def run_for(self, duration_us: int) -> None:
        if duration_us < 0:
            raise ValueError(f"a run of {duration_us} µs: time only goes forward")
        self.kernel.run_until(self.kernel.now_us + duration_us)

    def add(self, address: Address, clock: Clock | None = None) -> Host:
        """A new machine, still off; its index in the network is the next."""
        if address in self.hosts:
            raise ValueError(f"there is a host {address} already; restart() starts it again")
        host = self.hosts[address] = Host(address, index=len(self.hosts), clock=clock or TRUE_CLOCK)
        return host

    def start(self, address: Address) -> Host:
        """Switch a machine on, adding it if it is new."""
        host = self.hosts.get(address) or self.add(address)
        if host.stack is not None:
            raise ValueError(f"{address} is running already")
        host.gone = False
        self._note(host, "start")
        now_us = host.clock.local_us(self.kernel.now_us)
        carry_out(self, host, host.switch_on(self._build(address), now_us, self.seed, host.disk))
        return host

    def call(self, address: Address, protocol: str, request: object) -> None:
        """A request from the application of a host, now; one that is down does not hear it."""
        host = self.host(address)
        self._attend(host, self._called, host, protocol, request)

    def crash(self, address: Address, *, lose_disk: bool = False) -> None:
        """Power off. Memory and timers are gone; the disk is what Persist wrote."""
        host = self.host(address)
        self._note(host, "crash and lose the disk" if lose_disk else "crash")
        self._strike(host, "crash after it")
        host.switch_off()
        if lose_disk:
            host.disk.clear()

    def leave(self, address: Address) -> None:
        """Go on purpose and for good, after the protocols' goodbyes."""
        host = self.host(address)
        if host.stack is not None:
            self._note(host, "leave")
            now_us = host.clock.local_us(self.kernel.now_us)
            carry_out(self, host, host.stack.leave(now_us))
            host.switch_off()
        host.gone = True

    def pause(self, address: Address) -> None:
        """Stand still, as under a long garbage collection; what comes waits."""
        host = self.host(address)
        self._note(host, "pause")
        self._strike(host, "pause after it")
        host.paused = True

    def resume(self, address: Address) -> None:
        host = self.host(address)
        self._note(host, "resume")
        host.paused = False
        self._attend_to_waiting(host)

    def slow_down(self, address: Address, step_cost_us: int) -> None:
        """From now on each step takes so long, and the next one waits; 0 is full speed."""
        if step_cost_us < 0:
            raise ValueError(f"a step cost of {step_cost_us} µs: it can't be negative")
        host = self.host(address)
        self._note(host, f"{step_cost_us} µs a step")
        host.step_cost_us = step_cost_us

    def host(self, address: Address) -> Host:
        found = self.hosts.get(address)
        if found is None:
            raise ValueError(f"there is no host {address}")
        return found

    def up(self) -> list[Host]:
        """Hosts that are switched on, in the order in which they were added."""
        return [h for h in self.hosts.values() if h.stack is not None]

    # --- events, from the heap to the protocols ---

    def _attend(self, host: Host, action: Callable[..., None], *arguments: Any) -> None:
        """Do it if the host can; keep it for later if it stands still or is at work."""
        if host.stack is None:
            return
        if host.paused or host.busy:
            host.waiting.append((action, arguments))
        else:
            action(*arguments)

    def _attend_to_waiting(self, host: Host) -> None:
        while host.waiting and not host.paused and not host.busy and host.stack is not None:
            action, arguments = host.waiting.popleft()
            action(*arguments)

    def _arrived(self, host: Host, protocol: str, sender: Address, message: Message) -> None:
        if host.stack is None:
            self.faults["reached nobody"] += 1
            self.struck.add((_kind(protocol, message), "reached nobody"))
        elif host.paused or host.busy:
            host.waiting.append((self._arrived, (host, protocol, sender, message)))
        else:
            host.heard = (protocol, message)
            self._step(host, protocol, Receive(sender, message))

    def _due(self, timer: Timer) -> None:
        if not timer.is_set:
            return  # cancelled, set anew, or of an earlier life
        host: Host = timer.machine
        if host.paused or host.busy:
            host.waiting.append((self._due, (timer,)))
            return
        host.expired(timer)
        self._step(host, timer.protocol, TimerFired(timer.key))

    def _called(self, host: Host, protocol: str, request: object) -> None:
        self._step(host, protocol, Call(request))

    def _step(self, host: Host, protocol: str, event: Event) -> None:
        assert host.stack is not None
        self.steps += 1
        now_us = self.kernel.now_us
        if self._trace is not None:
            self._trace.event(now_us, host.address, protocol, event)
        carry_out(self, host, host.stack.step(host.clock.local_us(now_us), protocol, event))
        if host.step_cost_us:
            host.busy = True
            self.kernel.after(host.step_cost_us, self._step_done, host, host.lives)

    def _step_done(self, host: Host, life: int) -> None:
        if host.lives == life and host.busy:
            host.busy = False
            self._attend_to_waiting(host)

    # --- effects: the hands of `driving` ---

    def send(self, machine: Host, protocol: str, to: Address, message: Message) -> None:
        self.sent[protocol, type(message).__name__] += 1
        target = self.hosts.get(to)
        if target is None:
            self.faults["reached nobody"] += 1
            return
        now_us, source = self.kernel.now_us, machine.index
        delays = ON_TIME
        if self.weather is not None and machine is not target:
            befell: list[str] = []
            delays = self.weather.delays_us(now_us, source, target.index, befell)
            for fault in befell:
                self.faults[fault] += 1
                self.struck.add((_kind(protocol, message), fault))
        for extra_us in delays:
            if self._has_queues:
                size = len(_size(message)) + HEADER_BYTES
                arrival_us = self.network.arrival_us(now_us, source, target.index, size)
            else:
                arrival_us = now_us + self.network.latency_us(source, target.index)
            self.kernel.at(
                arrival_us + extra_us, self._arrived, target, protocol, machine.address, message
            )

    def wake(self, machine: Host, timer: Timer, after_us: int) -> None:
        due_us = self.kernel.now_us + machine.clock.true_delay_us(after_us)
        self.kernel.at(due_us, self._due, timer)

    def persist(self, machine: Host, protocol: str, effect: Persist) -> None:
        drawer = machine.disk.setdefault(protocol, {})
        if effect.value is None:
            drawer.pop(effect.key, None)
        else:
            drawer[effect.key] = effect.value

    def deliver(self, machine: Host, protocol: str, value: object) -> None:
        if self._on_deliver is not None:
            self._on_deliver(machine, protocol, value)

    def _strike(self, host: Host, fault: str) -> None:
        """It befalls a machine right behind the step in which it heard a message."""
        if host.heard is not None:
            self.struck.add((_kind(*host.heard), fault))

    def _note(self, host: Host, what: str) -> None:
        if self._trace is not None:
            self._trace.note(self.kernel.now_us, host.address, what)


def _kind(protocol: str, message: Message) -> str:
    return f"{protocol} {type(message).__name__}"
