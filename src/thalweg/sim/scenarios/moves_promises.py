"""What scenario `moves` promises beside the changelog: one owner in an epoch, nothing left over."""

from __future__ import annotations

from thalweg.adapt.moves.processor.processor import Processor
from thalweg.adapt.moves.protocol import Moves
from thalweg.overlay.protocol import Address
from thalweg.sim.host import Host
from thalweg.sim.scenarios.moves_strikes import MANAGER, UNION
from thalweg.sim.world import World


def moves_at(host: Host) -> Moves:
    assert host.stack is not None
    found = host.stack["moves"]
    assert isinstance(found, Moves)
    return found


def processor_at(host: Host) -> Processor | None:
    return moves_at(host).processor


def two_owners(world: World) -> str | None:
    """In one epoch a bucket has one owner."""
    claims: list[tuple[int, int, int, Address]] = []
    for host in world.up():
        processor = processor_at(host)
        for holding in processor.owned() if processor is not None else ():
            m = holding.meta
            for lo, hi, epoch, other in claims:
                if epoch == m.epoch and lo < m.hi and m.lo < hi and other != host.address:
                    bucket = max(lo, m.lo)
                    return f"bucket {bucket}, epoch {epoch}: both {other} and {host.address}"
            claims.append((m.lo, m.hi, m.epoch, host.address))
    return None


def slowest(world: World) -> str:
    """What the union waits for."""
    union = moves_at(world.hosts[UNION]).union
    assert union is not None
    lo, hi, part = min(union.parts, key=lambda p: p[2].frontier)
    return f"buckets {lo} to {hi - 1} at {part.frontier}, {part.tracks}"


def left_over(world: World, buckets: int) -> str | None:
    """No move is open; each bucket has one owner, whom the union follows."""
    manager = moves_at(world.hosts[MANAGER]).manager
    union = moves_at(world.hosts[UNION]).union
    assert manager is not None
    assert union is not None
    if manager.moves or manager.waiting:
        return f"moves are open: {manager.moves}, {manager.waiting}"
    owned: list[tuple[int, int, Address]] = []
    for host in world.up():
        processor = processor_at(host)
        for holding in processor.holdings if processor is not None else ():
            m = holding.meta
            if m.given is not None or not m.active:
                return f"{host.address} keeps buckets {m.lo} to {m.hi - 1}, given to {m.given}"
            if m.pending is not None:
                return f"{host.address} has a move open: {m.pending}"
            owned.append((m.lo, m.hi, host.address))
    at = 0
    for lo, hi, _ in sorted(owned):
        if lo != at:
            return f"bucket {min(lo, at)} has {'no owner' if lo > at else 'two owners'}"
        at = hi
    if at != buckets:
        return f"bucket {at} has no owner"
    for lo, hi, part in union.parts:
        if len(part.tracks) != 1:
            return f"buckets {lo} to {hi - 1} have {len(part.tracks)} tracks"
    return None
