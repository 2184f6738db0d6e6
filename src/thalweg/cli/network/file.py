"""A network described in a TOML file.

strategy = "sqpr"     # where operators of queries run, unless submit says otherwise
planning = "node"     # who decides that: the node that was asked; or "protocol": nodes together
mode = "homes"        # or p2p: streams are fed at any node, and peers join
copies = 1            # among peers: so many others have what a source has sent
room = 100000         # tuples of a stream that a peer keeps; without, all
shedding = "oldest"   # or least-matched: which go first where there is no room
trees = "nearest"     # or greedy, adaptive: streams travel along trees; without, from their homes
round_s = 20          # with adaptive trees: between rounds of adaptation
replan_every_s = 30   # how often nodes look whether plans still fit, and move what does not

controller = "partners"  # who moves fragments: manager ([balance]), partners or replanning; the
                      # others, where they are set up, only advise

[sites.eu]
controller = "manager"  # of this site, where it is another

[partners]            # nodes of a site with little to do ask those with much (COSMOS 6)
round_s = 5           # between two looks at who has how much
kappa = 1.2           # loads that differ by less are equal
alpha = 0.9           # of the low-pass filter
max1 = 5              # partners that a node asks for

[balance]             # fragments go from the most loaded node to the least loaded; without, none do
node = "paris"        # who decides
threshold = 0.25      # of the mean load, by which the most loaded has more
pause_s = 60          # between two moves
by = "precopy"        # their only way; without, each goes by the cheapest

[[node]]
name = "paris"
site = "eu"
master = "local[2]"   # in-process for ticks without Spark
port = 7341           # of its service; a free one if it is not given
cpu = 2.0             # cores that placed queries may take; without, as many as they like
out_bps = 100e6       # and bits per second that may leave it, and come in
in_bps = 100e6
memory_bytes = 4e9    # from nine tenths on, the balancer takes state away

[[node]]
name = "lyon"
site = "eu"
engine = "none"       # a broker: it only passes streams on, along trees; "native": see docs
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec

from thalweg.cli.exits import BAD_INPUT, CommandFailed
from thalweg.cli.network.mode import Mode, usual_master
from thalweg.cli.network.naming import check_node_name
from thalweg.cli.network.running import Wanted
from thalweg.plan.engines import NO_ENGINE, SHARED
from thalweg.runtime.network.moves.controllers import Conflict, Controller, controller_of
from thalweg.runtime.network.placing.strategies import PlanningBy, Strategy

_Trees = Literal["nearest", "greedy", "adaptive"]
_Engine = Literal["shared", "native", "none"]
_Shedding = Literal["oldest", "least-matched"]
_Way = Literal["precopy", "mslb", "ptlb", "replay"]
TREES: tuple[str, ...] = get_args(_Trees)
Limit = Annotated[float, msgspec.Meta(ge=0)] | None


class _Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    site: str = "here"
    master: str | None = None
    port: int = 0
    cpu: Limit = None
    out_bps: Limit = None
    in_bps: Limit = None
    memory_bytes: Limit = None
    engine: _Engine = SHARED


class _Balance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    node: str
    threshold: Annotated[float, msgspec.Meta(ge=0)] = 0.25
    pause_s: Annotated[float, msgspec.Meta(ge=0)] = 60.0
    by: _Way | None = None


class _Partners(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    round_s: Annotated[float, msgspec.Meta(ge=0.1)] = 5.0
    kappa: Annotated[float, msgspec.Meta(gt=1)] = 1.2
    alpha: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.9
    max1: Annotated[int, msgspec.Meta(ge=1)] = 5

    @property
    def as_option(self) -> str:
        return ",".join(f"{f}={getattr(self, f)}" for f in self.__struct_fields__)


class _Site(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    controller: Controller


_CHOICES: dict[str, tuple[str, ...] | type[StrEnum]] = {
    "strategy": Strategy,
    "planning": PlanningBy,
    "mode": Mode,
    "controller": Controller,
    "trees": TREES,
    "engine": get_args(_Engine),
    "shedding": get_args(_Shedding),
    "by": get_args(_Way),
}


def _in_words(error: Exception) -> str:
    """With what there is to choose from."""
    if str(error) == "Object missing required field `node`":
        return "there is no [[node]]"
    found = re.fullmatch(r"Invalid enum value '(.*)' - at `\$(?:.*\.)?(\w+)`", str(error))
    if found is None or found[2] not in _CHOICES:
        return str(error)
    return f'{found[2]} = "{found[1]}": there are {", ".join(_CHOICES[found[2]])}'


class _Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    node: tuple[_Node, ...]
    strategy: Strategy = Strategy.local
    planning: PlanningBy = PlanningBy.node
    mode: Mode = Mode.homes
    copies: Annotated[int, msgspec.Meta(ge=0)] | None = None
    room: Annotated[int, msgspec.Meta(ge=1)] | None = None
    shedding: _Shedding | None = None
    trees: _Trees | None = None
    round_s: Annotated[float, msgspec.Meta(ge=0.5)] | None = None
    replan_every_s: Annotated[float, msgspec.Meta(gt=0)] | None = None
    balance: _Balance | None = None
    partners: _Partners | None = None
    controller: Controller | None = None
    sites: dict[str, _Site] = {}


def nodes_of(path: Path) -> list[Wanted]:
    """The nodes that a file wants. Raises CommandFailed, which says what is wrong with it."""
    try:
        found = msgspec.convert(tomllib.loads(path.read_text()), _Network)
    except OSError as error:
        raise CommandFailed(f"can't read {path}: {error.strerror}", BAD_INPUT) from None
    except (ValueError, msgspec.ValidationError) as error:
        raise CommandFailed(f"{path}: {_in_words(error)}", BAD_INPUT) from None
    names = [n.name for n in found.node]
    for name in names:
        check_node_name(name)
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice or not names:
        what = f"two nodes are named {twice[0]}" if twice else "there is no [[node]]"
        raise CommandFailed(f"{path}: {what}", BAD_INPUT)
    chosen, trees, balance = found.strategy.value, found.trees, found.balance
    if balance is not None and balance.node not in names:
        raise CommandFailed(
            f"{path}: [balance] names {balance.node}, and no [[node]] has that name", BAD_INPUT
        )
    if balance is not None and found.mode is not Mode.homes:
        raise CommandFailed(f'{path}: [balance] is for mode = "homes"', BAD_INPUT)
    deciding = _controllers(path, found)
    if found.planning is PlanningBy.protocol:
        _check_protocol(path, found, deciding)
    if trees is None and any(n.engine == NO_ENGINE for n in found.node):
        raise CommandFailed(
            f'{path}: nodes with engine = "none" pass streams on along trees: '
            'say trees = "nearest" above',
            BAD_INPUT,
        )
    return [
        Wanted(
            n.name,
            n.site,
            n.master or usual_master(found.mode),
            n.port,
            chosen,
            n.cpu,
            n.out_bps,
            n.in_bps,
            found.mode.value,
            found.copies,
            found.room,
            found.shedding,
            n.engine,
            trees,
            found.round_s,
            found.replan_every_s,
            None
            if balance is None or balance.node != n.name
            else (balance.threshold, balance.pause_s),
            n.memory_bytes,
            _partners(found, deciding[n.site]),
            deciding[n.site],
            found.planning.value,
            None if balance is None or balance.node != n.name else balance.by,
        )
        for n in found.node
    ]


def _check_protocol(path: Path, found: _Network, deciding: Mapping[str, str | None]) -> None:
    """Raises CommandFailed."""
    if found.mode is not Mode.homes:
        raise CommandFailed(f'{path}: planning = "protocol" is for mode = "homes"', BAD_INPUT)
    movers = {Controller.manager.value, Controller.partners.value} & set(deciding.values())
    if movers or found.balance is not None or found.partners is not None:
        told = 'a manager, partners, or planning = "protocol"'
        raise CommandFailed(f"{path}: fragments are moved by one of them: {told}", BAD_INPUT)


def _controllers(path: Path, found: _Network) -> dict[str, str | None]:
    """By site. Raises CommandFailed."""
    manager, partners, replanning = Controller.manager, Controller.partners, Controller.replanning
    set_up = {
        manager: found.balance is not None,
        partners: found.partners is not None,
        replanning: found.replan_every_s is not None,
    }
    sites = {n.name: n.site for n in found.node}
    if unknown := sorted(found.sites.keys() - set(sites.values())):
        raise CommandFailed(f"{path}: [sites.{unknown[0]}]: no [[node]] has that site", BAD_INPUT)
    chosen: dict[str, str | None] = {}
    for site in sorted(set(sites.values())):
        own = found.sites.get(site)
        wanted = found.controller if own is None else own.controller
        try:
            controller_of(wanted, [c for c, is_so in set_up.items() if is_so])
        except Conflict as error:
            raise CommandFailed(f"{path}: {error}", BAD_INPUT) from None
        balance = found.balance
        if wanted is manager and (balance is None or sites[balance.node] != site):
            what = f"the manager of site {site} is a node of it: say [balance] node"
            raise CommandFailed(f"{path}: {what}", BAD_INPUT)
        if wanted is replanning and found.replan_every_s is None:
            raise CommandFailed(f"{path}: replanning needs replan_every_s", BAD_INPUT)
        chosen[site] = None if wanted is None else wanted.value  # else it is the only one
    is_there = partners.value in chosen.values() or found.partners is not None
    if is_there and found.mode is not Mode.homes:
        raise CommandFailed(f'{path}: partners are for mode = "homes"', BAD_INPUT)
    return chosen


def _partners(found: _Network, decides: str | None) -> str | None:
    """As the option of a node."""
    if found.partners is None and decides != Controller.partners.value:
        return None
    return (found.partners or _Partners()).as_option
