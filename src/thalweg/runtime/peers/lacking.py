"""What is missing in the results of peers, as their readers are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thalweg.overlay.p2p.query import JoinQuery
from thalweg.overlay.p2p.result_messages import SourceLost
from thalweg.overlay.p2p.results import OpenQuery
from thalweg.runtime.peers.definitions import name_of
from thalweg.runtime.peers.peers import Peers


def lacking(
    joins: Sequence[JoinQuery], peers: Peers, named: Callable[[str], str]
) -> dict[str, Any]:
    """`completeness`, where tuples were shed: an estimate, of all results so far. `lost`: sources
    that are in no result from an instant on. `waits`: streams whose registers have no majority.
    `possibly_incomplete`: rows come at once, and nobody knows whether some are missing."""

    def look(standing: OpenQuery) -> tuple[float, list[SourceLost]]:
        return standing.completeness, [x for x in standing.lost.values() if x.since is not None]

    found = [peers.query(join.id, look) or (1.0, []) for join in joins]
    told: dict[str, Any] = {}
    if any(join.eager for join in joins):
        told["possibly_incomplete"] = True
    share = min([share for share, _ in found], default=1.0)
    if share < 1:
        told["completeness"] = round(share, 4)
    gone = [x for _, lost in found for x in lost]
    if gone:
        told["lost"] = [
            {"stream": name_of(x.stream), "node": named(x.address), "since": x.since} for x in gone
        ]
    waits = {s: members for join in joins for s, members in peers.waiting(join.id).items()}
    if waits:
        told["waits"] = [
            {"stream": name_of(stream), "nodes": [named(a) for a in members]}
            for stream, members in waits.items()
        ]
    return told


def lacking_text(told: dict[str, Any], moment: Callable[[int, str], str]) -> str | None:
    """`moment` is an instant as a stream writes it."""
    parts = [
        f"results from {moment(x['since'], x['stream'])} on "
        f"lack what {x['node']} had of {x['stream']}"
        for x in told.get("lost", ())
    ]
    parts += [
        f"{x['stream']} waits: most of {', '.join(x['nodes'])}, who keep its register, are away"
        for x in told.get("waits", ())
    ]
    if "completeness" in told:
        share = 100 * told["completeness"]
        parts.append(f"about {share:.3g} % of all results: peers have no room for more tuples")
    return "; ".join(parts) or None
