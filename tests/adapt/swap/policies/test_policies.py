"""Routing policies: what each sees, and what it is blind to."""

import pytest

from thalweg.adapt.swap.policies.back_pressure import BackPressure
from thalweg.adapt.swap.policies.both import LotteryAndBackPressure
from thalweg.adapt.swap.policies.fixed import Fixed
from thalweg.adapt.swap.policies.lottery import Lottery
from thalweg.adapt.swap.policies.policy import Option
from thalweg.overlay.generator import Generator

NEAR, FAR = 0, 2
BATCH = 8


class Eddy:
    """Rows for two sites, each of which consumes at a rate and returns by a selectivity."""

    def __init__(self, policy, selectivity, rate=(BATCH, BATCH), queue=64):
        self.policy, self.selectivity, self.rate, self.queue = policy, selectivity, rate, queue
        self.waiting, self.sent = [0, 0], [0, 0]
        self.generator = Generator(1)
        self.credit, self.owed = [0.0, 0.0], [0.0, 0.0]

    def play(self, ticks):
        for _ in range(ticks):
            for _ in range(2):  # more than one site consumes
                self.route()
            for side, target in enumerate((NEAR, FAR)):
                self.credit[side] += self.rate[side]
                taken = min(self.waiting[side], int(self.credit[side]))
                self.credit[side] = min(self.credit[side] - taken, self.rate[side])
                self.waiting[side] -= taken
                self.policy.consumed(target, taken)
                self.owed[side] += taken * self.selectivity[side]
                back = int(self.owed[side])
                self.owed[side] -= back
                self.policy.returned(target, back)
        return self

    def route(self):
        options = [
            Option(t, self.queue - w) for t, w in zip((NEAR, FAR), self.waiting, strict=True)
        ]
        target = self.policy.choose(options, BATCH, self.generator)
        if target is not None:
            side = (NEAR, FAR).index(target)
            count = min(BATCH, options[side].room)
            assert count > 0
            self.waiting[side] += count
            self.sent[side] += count

    def share(self, ticks):
        """Of rows to the near site, in the next ticks."""
        before = list(self.sent)
        self.play(ticks)
        near, far = (now - was for now, was in zip(self.sent, before, strict=True))
        return near / (near + far)


FAST = (3 * BATCH, 3 * BATCH)


@pytest.mark.parametrize("policy", [Lottery, LotteryAndBackPressure])
def test_tickets_prefer_the_more_selective_site(policy):
    assert Eddy(policy(), (0.2, 1.0), FAST).play(200).share(500) > 0.9


def test_back_pressure_does_not_see_selectivity():
    assert 0.4 < Eddy(BackPressure(), (0.2, 1.0), FAST).play(200).share(500) < 0.6


def test_a_slow_site_gets_what_it_can_take_and_the_lottery_waits_for_it():
    slow = (BATCH, BATCH / 8)
    for policy in (BackPressure, LotteryAndBackPressure):
        eddy = Eddy(policy(), (0.5, 0.5), slow).play(200)
        assert 0.85 < eddy.share(500) < 0.92
    waits = Eddy(Lottery(), (0.5, 0.5), slow).play(3_000)
    keeps_up = Eddy(LotteryAndBackPressure(), (0.5, 0.5), slow).play(3_000)
    assert sum(waits.sent) < 0.9 * sum(keeps_up.sent)


def test_rows_overflow_only_where_that_saves_something():
    """The better site is full; the other one returns as many rows as it gets."""
    narrow = (BATCH, 3 * BATCH)
    assert Eddy(LotteryAndBackPressure(), (0.2, 1.0), narrow).play(200).share(500) > 0.95
    assert Eddy(LotteryAndBackPressure(), (0.2, 0.5), narrow).play(200).share(500) < 0.8


@pytest.mark.parametrize("selectivity", [(0.2, 1.0), (0.2, 0.8), (1.0, 2.0), (0.5, 0.6)])
def test_exploration_takes_two_percent_once_statistics_are_stable(selectivity):
    policy = LotteryAndBackPressure()
    eddy = Eddy(policy, selectivity, FAST).play(300)
    before = policy.chosen.copy()
    stable = policy.stable_rows
    eddy.play(3_000)
    new = policy.chosen - before
    stable = policy.stable_rows - stable
    assert stable >= 0.9 * sum(new.values())
    assert 0 < new["exploration"] <= 0.02 * stable + BATCH


def test_a_change_is_followed():
    eddy = Eddy(LotteryAndBackPressure(), (0.2, 2.0), FAST).play(400)
    assert eddy.share(200) > 0.95
    eddy.selectivity = (2.0, 0.2)
    eddy.play(250)  # some 4,000 rows
    assert eddy.share(200) < 0.1


def test_a_static_plan_keeps_its_order_and_waits():
    policy = Fixed([FAR, NEAR])
    options = [Option(NEAR, 10), Option(FAR, 0)]
    assert policy.choose(options, 5, Generator(1)) is None
    assert policy.choose([Option(NEAR, 10), Option(FAR, 1)], 5, Generator(1)) == FAR
