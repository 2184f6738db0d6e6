"""Sites with CPUs and links that take their time: the simulator's world, with the costs of rows."""

from __future__ import annotations

from collections.abc import Callable

from thalweg.adapt.swap.messages import Batch, Feed
from thalweg.experiments.swap.setting import S, Setting
from thalweg.overlay.driving import carry_out
from thalweg.overlay.protocol import Address, Call, Event, Message, Persist, Receive, Send
from thalweg.overlay.stack import Effects, Stack
from thalweg.sim.host import Host
from thalweg.sim.world import World


class TimedWorld(World):
    """A step takes the time of its rows, and what it sends leaves when it is done; a link sends one
    row after the other."""

    def __init__(
        self,
        build: Callable[[Address], Stack],
        setting: Setting,
        after_step: Callable[[Host], None],
        on_deliver: Callable[[Host, str, object], None],
    ) -> None:
        super().__init__(build, seed=setting.seed, on_deliver=on_deliver)
        self.setting = setting
        self._after_step = after_step
        self._free_us: dict[tuple[Address, Address], float] = {}
        self._leaves_us = 0
        self.busy_us: dict[Address, float] = {}
        self.last_row_us = 0

    def _step(self, host: Host, protocol: str, event: Event) -> None:
        assert host.stack is not None
        self.steps += 1
        now_us = self.kernel.now_us
        effects = host.stack.step(now_us, protocol, event)
        cost_us = round(
            self._cost_us(event, effects) * self.setting.cpu_factor(host.address, now_us)
        )
        effects = [e for e in effects if type(e[1]) is not Persist]  # nobody restarts here
        self._leaves_us = now_us + cost_us
        if cost_us:
            self.last_row_us = max(self.last_row_us, self._leaves_us)
        carry_out(self, host, effects)
        if cost_us:
            self.busy_us[host.address] = self.busy_us.get(host.address, 0.0) + cost_us
            host.busy = True
            self.kernel.after(cost_us, self._step_done, host, host.lives)
        self._after_step(host)

    def _cost_us(self, event: Event, effects: Effects) -> float:
        costs, cost_us = self.setting.costs, 0.0
        if isinstance(event, Call) and isinstance(event.request, Feed):
            rows, joins = len(event.request.tuples), event.request.stream != S
            cost_us += rows * (costs.read + (costs.join if joins else 0.0))
        elif isinstance(event, Receive) and isinstance(event.message, Batch):
            is_node = event.message.target >= 0
            cost_us += len(event.message.entries) * (costs.join if is_node else 0.0)
        for _, effect in effects:
            if type(effect) is Send and isinstance(effect.message, Batch):
                batch = effect.message
                cost_us += len(batch.entries) * (costs.send if batch.source == S else costs.make)
        return cost_us

    def send(self, machine: Host, protocol: str, to: Address, message: Message) -> None:
        self.sent[protocol, type(message).__name__] += 1
        target = self.hosts[to]
        arrival_us = float(self._leaves_us)
        if isinstance(message, Batch) and message.entries:
            link = (machine.address, to)
            starts_us = max(arrival_us, self._free_us.get(link, 0.0))
            a_row_us = self.setting.link_us(*link, int(starts_us))
            arrival_us = self._free_us[link] = starts_us + len(message.entries) * a_row_us
        when_us = round(arrival_us) + self.setting.costs.latency
        self.kernel.at(when_us, self._arrived, target, protocol, machine.address, message)
