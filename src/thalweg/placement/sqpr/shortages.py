"""What a piece lacks: where it needs more than is left."""

from __future__ import annotations

from thalweg.placement.arrays import Floats
from thalweg.placement.ledger import SLACK, Ledger
from thalweg.placement.rows import Piece, Shortage


def shortages(ledger: Ledger, piece: Piece) -> list[Shortage]:
    """Where the piece needs more than is left."""
    hosts, rate = ledger.problem.hosts, ledger.problem.streams.rate_bps
    cpu: dict[int, float] = {}
    out: dict[int, float] = {}
    into: dict[int, float] = {}
    link: dict[tuple[int, int], float] = {}
    for host, operator in piece.runs:
        cpu[host] = cpu.get(host, 0.0) + float(ledger.problem.operators.cpu[operator])
    for source, target, stream in piece.sends:
        out[source] = out.get(source, 0.0) + float(rate[stream])
        into[target] = into.get(target, 0.0) + float(rate[stream])
        link[source, target] = link.get((source, target), 0.0) + float(rate[stream])
    if (piece.host, piece.stream) not in ledger.results:
        out[piece.host] = out.get(piece.host, 0.0) + float(rate[piece.stream])
    found = [
        *_short("cpu", cpu, ledger.cpu_left, hosts.cpu),
        *_short("bandwidth out", out, ledger.out_left, hosts.out_bps),
        *_short("bandwidth in", into, ledger.in_left, hosts.in_bps),
    ]
    if ledger.link_left is not None and hosts.link_bps is not None:
        found += [
            Shortage("link", h, need, float(ledger.link_left[h, m]), m)
            for (h, m), need in link.items()
            if need > ledger.link_left[h, m] + SLACK * hosts.link_bps[h, m]
        ]
    return found


def _short(
    resource: str, needs: dict[int, float], left: Floats, capacity: Floats
) -> list[Shortage]:
    return [
        Shortage(resource, host, need, float(left[host]))
        for host, need in needs.items()
        if need > left[host] + SLACK * capacity[host]
    ]
