"""What is known about queries, providers and substreams; the words of all modules of this package.

An *epoch* names one spell of ownership of a query. Whoever may give a query to a provider (its
proxy, its present owner, the root for one whose proxy is gone) makes a new epoch for every attempt
and binds it to one provider. The granter's name and the random number of its present life are parts
of the epoch, so that no two granters, and no granter before and after it lost its memory, ever make
the same one (a driver gives every start a seed of its own). Of two epochs of a query the higher one
counts.

A *rescue*, by a root that can reach neither owner nor proxy, ranks right below the epoch that it
stands in for: if that owner turns up again (it was only cut off), it has not lost the query.
"""

from __future__ import annotations

import msgspec

from thalweg.overlay.protocol import Address


class Epoch(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    number: int
    rescue: int  # 0: none
    granter: Address
    life: int


class Query(msgspec.Struct, frozen=True, array_like=True, gc=False):
    name: str
    text: str
    proxy: Address  # where its user is
    substreams: tuple[int, ...]
    result_bps: float
    weight: float  # its load, as estimated when it was submitted
    state_bytes: float


class Running(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    query: Query
    epoch: Epoch
    owner: Address
    weight: float  # its load, as measured


class Provider(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    address: Address
    capability: float  # 0: takes no queries, and wants to be rid of those that it has


class Rate(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    substream: int
    source: Address
    number: int  # of the measurement
    bps: float


Entry = Running | Provider | Rate


def key_of(entry: Entry) -> str:
    match entry:
        case Running(query):
            return f"q {query.name}"
        case Provider(address):
            return f"p {address}"
        case Rate(substream):
            return f"s {substream}"


def rank(entry: Entry) -> tuple[int | Epoch, Address]:
    """Of two entries with one key, the higher one is the newer."""
    match entry:
        case Running(_, epoch, owner):
            return epoch, owner
        case Provider(address):
            return 0, address
        case Rate(_, source, number):
            return number, source
