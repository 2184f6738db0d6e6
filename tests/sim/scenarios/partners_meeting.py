"""Which faults met which steps of a move, over many seeds."""

from collections import Counter
from contextlib import ExitStack
from unittest.mock import patch

from thalweg.sim.run import run
from thalweg.sim.scenarios.partners import PartnersScenario, at
from thalweg.sim.weather import Weather
from thalweg.sim.world import World

# The messages of a move, and the steps that a machine can be in.
MESSAGES = (
    "Propose", "Accept", "Load", "Ask", "Offer", "Consent", "Transfer", "Transferred", "Ship",
    "Shipped", "Renew", "Lease", "Stale", "Located",
)  # fmt: skip
STEPS = ("asking", "offering", "stopping", "transferring", "shipping", "expecting", "home of one")
LINKS = ("loss", "duplication", "reordering", "delay", "clogged", "cut off")
MACHINES = ("crash", "pause", "slow", "leave")


def steps_of(host):
    node = at(host)
    leaving = node.holdings.leaving.values()
    found = {
        "asking": node._wish is not None,
        "offering": bool(node._reserved),
        "stopping": any(h.stopping for h in node.holdings.held.values()),
        "transferring": any(not k.shipping for k in leaving),
        "shipping": any(k.shipping for k in leaving),
        "expecting": bool(node._coming),
        "home of one": bool(node.homes.abroad()),
    }
    return [step for step, holds in found.items() if holds]


def met(seeds, kind=PartnersScenario):
    """Counts by (fault, message or step), and problems by seed."""
    counts, problems, sending = Counter(), {}, [""]
    send, delays = World.send, Weather.delays_us
    calls = {"crash": World.crash, "pause": World.pause, "slow": World.slow_down,
             "leave": World.leave}  # fmt: skip

    def sent(world, machine, protocol, to, message):
        sending[0] = type(message).__name__ if protocol == "partners" else ""
        send(world, machine, protocol, to, message)

    def delayed(weather, now_us, source, target, befell):
        found = delays(weather, now_us, source, target, befell)
        if sending[0]:
            counts.update((fault, sending[0]) for fault in befell)
        return found

    def hit(fault):
        def happens(world, address, *rest, **more):
            host = world.host(address)
            if host.stack is not None:
                counts.update((fault, step) for step in steps_of(host))
            return calls[fault](world, address, *rest, **more)

        return happens

    with ExitStack() as stack:
        stack.enter_context(patch.object(World, "send", sent))
        stack.enter_context(patch.object(Weather, "delays_us", delayed))
        names = {"crash": "crash", "pause": "pause", "slow": "slow_down", "leave": "leave"}
        for fault, name in names.items():
            stack.enter_context(patch.object(World, name, hit(fault)))
        for seed in seeds:
            problem = run(kind, seed).problem
            if problem is not None:
                problems[seed] = problem
    return counts, problems


def cells():
    return [(f, m) for f in LINKS for m in MESSAGES] + [(f, s) for f in MACHINES for s in STEPS]
