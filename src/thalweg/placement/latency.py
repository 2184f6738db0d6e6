"""How long a stream takes to a host: the longest way from a home, by the latencies of the sends."""

from __future__ import annotations

from thalweg.placement.ledger import Ledger
from thalweg.placement.rows import Piece, Run, Send


def delay_ms(ledger: Ledger, host: int, stream: int, piece: Piece | None = None) -> float:
    """With a piece, as it will be once the piece is added."""
    latency = ledger.problem.hosts.latency_ms
    if latency is None:
        return 0.0
    output = ledger.problem.operators.output
    new: dict[tuple[int, int], Run | Send] = {}
    if piece is not None:
        new = {(run.host, int(output[run.operator])): run for run in piece.runs}
        new |= {(send.target, send.stream): send for send in piece.sends}
    known: dict[tuple[int, int], float] = {}

    def delay(place: tuple[int, int]) -> float:
        if place not in known:
            row = ledger.providers.get(place) or new.get(place)
            longest = max((delay(p) for p in ledger.inputs_of(row)), default=0.0) if row else 0.0
            way = float(latency[row.source, row.target]) if isinstance(row, Send) else 0.0
            known[place] = longest + way
        return known[place]

    return delay((host, stream))
