"""Scenario `moves`, turned towards one rule each."""

from collections import deque
from dataclasses import replace

from thalweg.adapt.moves.messages.data import ReadResults
from thalweg.adapt.moves.messages.records import StartMove, Stepped
from thalweg.adapt.moves.operators import COUNT, SUM, Operator
from thalweg.adapt.moves.protocol import Moves
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.scenarios.moves import MovesScenario
from thalweg.sim.scenarios.moves_strikes import MANAGER, ROLES


class Impatient(MovesScenario):
    settle_within_us = 50 * SECOND_US


class Grouped(Impatient):
    """An aggregate by the key stands below the union."""

    above = False

    def __init__(self, options, generator):
        super().__init__(options, generator)
        calls = ((COUNT, -1), (SUM, 0))
        operator = Operator((len(self.query.streams),), calls, self.above)
        self.query = replace(self.query, operator=operator)


class GroupedAbove(Grouped):
    above = True


class Repeating(Moves):
    """Hears every question of the union once more, a second later."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.heard = deque()

    def _received(self, now_us, sender, message):
        if isinstance(message, ReadResults):
            self.heard.append((now_us, sender, message))
        return super()._received(now_us, sender, message)

    def _fired(self, now_us, key):
        effects = super()._fired(now_us, key)
        while self.heard and now_us - self.heard[0][0] > SECOND_US:
            _, sender, message = self.heard.popleft()
            effects += super()._received(now_us, sender, message)
        return effects


class LateQuestions(Impatient):
    moves = Repeating


class Forgetful(Impatient):
    """Sender and manager lose their disks when a move is decided; the sender is to move again."""

    def __init__(self, options, generator):
        super().__init__(options, generator)
        self.query = replace(self.query, operator=None)
        self.balances = False

    def delivered(self, host, protocol, value):
        super().delivered(host, protocol, value)
        if isinstance(value, Stepped) and value.step == "duplicate at splits":
            self._world.kernel.after(1, self._forget, value.move)

    def _forget(self, move):
        world = self._world
        if world.now_us > self.warm_up_us + self.storm_us:
            return
        for address in (MANAGER, move.sender):
            host = world.hosts[address]
            if host.is_up and (address in ROLES or self.can_spare(world, host)):
                self.strikes.open.clear()
                world.crash(address, lose_disk=True)
                world.kernel.after(SECOND_US // 5, self.strikes._return, world, address)
        others = [h.address for h in world.up() if h.address not in (*ROLES, move.receiver)]
        for number in range(1, 5):
            again = StartMove(move.sender, others[0], 0.9, "ptlb") if others else None
            world.kernel.after(number * SECOND_US // 3, self._again, again)

    def _again(self, request):
        if request is not None and self._world.hosts[MANAGER].is_up:
            self._world.call(MANAGER, "moves", request)
