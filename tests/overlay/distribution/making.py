"""Queries and epochs for the tests of this folder."""

from thalweg.overlay.distribution.entries import Epoch, Provider, Query, Running
from thalweg.overlay.distribution.picture import Subtree


def query(name, proxy="x", substreams=(0,), weight=1.0, result_bps=0.0, state_bytes=0.0):
    return Query(name, "SELECT *", proxy, substreams, result_bps, weight, state_bytes)


def epoch(number, granter="x", life=1, rescue=0):
    return Epoch(number, rescue, granter, life)


def running(name, owner, number=1, weight=1.0, **about):
    return Running(query(name, weight=weight, **about), epoch(number), owner, weight)


def subtree(address, capability, *runs):
    """A child: providers with their capabilities, and what runs there."""
    found = Subtree(address)
    found.add([*(Provider(a, float(c)) for a, c in capability.items()), *runs])
    return found
