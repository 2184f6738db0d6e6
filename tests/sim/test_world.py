"""The simulated driver: messages, timers, disks, clocks, and machines that come and go."""

import pytest
from tests.overlay.echo import Echo

from thalweg.overlay.generator import Generator
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Clock
from thalweg.sim.networks.uniform import UniformNetwork
from thalweg.sim.trace import Trace
from thalweg.sim.weather import Rates, Weather
from thalweg.sim.world import World


class Watched:
    """A world of two echoes, and what they delivered."""

    def __init__(self, **options):
        self.delivered = []
        self.world = World(
            lambda address: Stack([Echo()]),
            network=UniformNetwork(1_000),
            on_deliver=lambda host, _, value: self.delivered.append(
                (self.world.now_us, host.address, value)
            ),
            **options,
        )

    def started(self):
        self.world.start("a")
        self.world.start("b")
        return self.world


@pytest.fixture
def watched():
    return Watched()


@pytest.fixture
def world(watched):
    return watched.started()


def test_a_message_takes_the_latency_each_way(watched, world):
    world.call("a", "echo", "b")
    world.run_for(10_000)
    assert watched.delivered == [(2_000, "a", ("pong", 0))]
    assert world.sent == {("echo", "Ping"): 1, ("echo", "Pong"): 1}


def test_a_message_to_nobody_is_counted(world):
    world.call("a", "echo", "z")
    world.run_for(10_000)
    assert world.faults["reached nobody"] == 1


def test_a_timer_fires_once_and_a_new_setting_replaces_it(watched, world):
    world.call("a", "echo", ("timer", "t", 100))
    world.call("a", "echo", ("timer", "t", 300))
    world.call("a", "echo", ("timer", "u", 200))
    world.run_for(1_000)
    assert [v for _, _, v in watched.delivered] == [("timer", "u", 200), ("timer", "t", 300)]


def test_a_cancelled_timer_stays_silent(watched, world):
    world.call("a", "echo", ("timer", "t", 100))
    world.call("a", "echo", ("cancel", "t"))
    world.run_for(1_000)
    assert watched.delivered == []


def test_a_negative_delay_says_who_set_it(world):
    with pytest.raises(ValueError, match="echo at a set timer 't' for -1 µs"):
        world.call("a", "echo", ("timer", "t", -1))


def test_a_crash_forgets_timers_and_memory_but_not_the_disk(watched, world):
    world.call("a", "echo", "b")
    world.run_for(5_000)
    world.call("a", "echo", ("timer", "t", 1_000))
    world.crash("a")
    world.call("a", "echo", "b")
    world.run_for(500)
    echo = world.start("a").stack["echo"]
    world.run_for(5_000)
    assert [v for _, _, v in watched.delivered] == [("pong", 0)]
    assert echo.pongs == 1


def test_a_lost_disk_is_empty_after_the_restart(world):
    world.call("a", "echo", "b")
    world.run_for(5_000)
    world.crash("a", lose_disk=True)
    assert world.start("a").stack["echo"].pongs == 0


def test_a_paused_machine_catches_up_in_order(watched, world):
    world.pause("b")
    world.call("b", "echo", ("timer", "t", 100))
    world.call("a", "echo", "b")
    world.run_for(5_000)
    assert watched.delivered == []
    world.resume("b")
    world.run_for(5_000)
    assert [(t, v[0]) for t, _, v in watched.delivered] == [(5_100, "timer"), (6_000, "pong")]


def test_a_timer_that_came_due_in_a_pause_can_still_be_cancelled(watched, world):
    world.call("b", "echo", ("timer", "t", 1_000))
    world.pause("b")
    world.call("b", "echo", ("cancel", "t"))
    world.run_for(5_000)
    world.resume("b")
    assert watched.delivered == []


def test_a_slow_machine_does_one_thing_at_a_time(world):
    world.slow_down("b", 500)
    for _ in range(3):
        world.call("a", "echo", "b")
    world.run_for(10_000)
    assert world.hosts["b"].stack["echo"].heard_at_us == [1_000, 1_500, 2_000]


def test_a_crash_in_the_middle_of_slow_work_forgets_it(world):
    world.slow_down("b", 500)
    for _ in range(3):
        world.call("a", "echo", "b")
    world.run_for(1_100)
    world.crash("b")
    world.start("b")
    world.run_for(10_000)
    assert world.hosts["b"].stack["echo"].heard_at_us == []


def test_a_leaving_node_says_goodbye_and_is_gone(watched, world):
    world.leave("a")
    assert watched.delivered == [(0, "a", "bye")]
    assert world.hosts["a"].gone
    assert [h.address for h in world.up()] == ["b"]


def test_a_fast_clock_shows_later_times_and_shorter_delays(watched):
    world = watched.world
    world.add("a", Clock(offset_us=1_000_000, drift_ppm=250_000))
    world.start("a")
    world.call("a", "echo", ("timer", "t", 1_000))
    world.run_for(10_000)
    assert watched.delivered == [(800, "a", ("timer", "t", 1_001_000))]


def test_starting_twice_is_refused(world):
    with pytest.raises(ValueError, match="a is running already"):
        world.start("a")
    with pytest.raises(ValueError, match="there is a host a already"):
        world.add("a")


def test_time_does_not_run_backwards(world):
    with pytest.raises(ValueError, match="time only goes forward"):
        world.run_for(-1)
    with pytest.raises(ValueError, match="can't be negative"):
        world.slow_down("a", -1)
    with pytest.raises(ValueError, match="can't run backwards"):
        Clock(drift_ppm=-1_000_000)
    with pytest.raises(ValueError, match="can't be negative"):
        UniformNetwork(-1)


def _traced(seed):
    trace = Trace()
    world = Watched(trace=trace, seed=seed).started()
    world.weather = Weather(Generator(seed), Rates(loss=0.3, duplication=0.3, delay=0.3))
    for _ in range(20):
        world.call("a", "echo", "b")
        world.run_for(10_000)
    return trace.digest


def test_one_seed_one_trace():
    assert _traced(1) == _traced(1)
    assert _traced(1) != _traced(2)


def test_a_trace_tells_what_happened():
    lines = []
    world = Watched(trace=Trace(lines.append)).started()
    world.call("a", "echo", "b")
    world.run_for(1_000)
    world.crash("b")
    assert [line.strip() for line in lines[2:]] == [
        "0.000000s      a echo: asked to 'b'",
        "0.001000s      b echo: a says Ping(number=0)",
        "0.001000s      b *** crash",
    ]
