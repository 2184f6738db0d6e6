"""SVG of a deployment on its network: hosts where they are, operators on them, traffic between.

Without positions, latencies say where hosts are. Links of the network below, where they are known,
are drawn thin in the background.
"""

from __future__ import annotations

import numpy as np

from thalweg.placement.arrays import NONE, Floats, Ints
from thalweg.placement.deployment import Deployment
from thalweg.placement.drawing.flows import flows
from thalweg.placement.drawing.layout import positions as laid_out
from thalweg.placement.drawing.marks import Point, arrow, document, mark, shortened, text
from thalweg.placement.problem import Problem
from thalweg.placement.sand.query_trees import ways_of
from thalweg.placement.units import bps

_WIDE, _EDGE = 900.0, 70.0
_NAMED = 2  # operators of a host that are named; of more, the number is told


def map_svg(
    problem: Problem,
    deployment: Deployment,
    positions: Floats | None = None,
    links: Ints | None = None,
) -> str:
    """`positions` are (hosts, 2) in any unit; `links` are pairs of hosts."""
    if positions is None:
        positions = laid_out(ways_of(problem.hosts).latency_ms)
    places, height = _fitted(positions)
    parts = [] if links is None else [_link(places[a], places[b]) for a, b in links.tolist()]
    parts += [_dot(place) for place in places]
    parts += _arrows(problem, deployment, places)
    parts += _hosts(problem, deployment, places)
    return document(_WIDE, height, parts)


def _fitted(positions: Floats) -> tuple[list[Point], float]:
    """Onto the page, upright, with the same scale across and up."""
    if not len(positions):
        return [], 2 * _EDGE
    low, high = positions.min(axis=0), positions.max(axis=0)
    span = np.maximum(high - low, 1e-9)
    scale = (_WIDE - 2 * _EDGE) / float(max(span[0], span[1]))
    at = (positions - low) * scale + _EDGE
    height = float(span[1]) * scale + 2 * _EDGE
    return [(float(x), height - float(y)) for x, y in at], height


def _arrows(problem: Problem, deployment: Deployment, places: list[Point]) -> list[str]:
    found = flows(problem, deployment)
    heaviest = max((flow.rate_bps for flow in found), default=0.0) or 1.0
    names = problem.hosts.names
    return [
        arrow(
            places[flow.source],
            places[flow.target],
            0.8 + 5 * flow.rate_bps / heaviest,
            f"{names[flow.source]} to {names[flow.target]}: "
            f"{', '.join(problem.streams.names[s] for s in flow.streams)}, {bps(flow.rate_bps)}",
            short_of=10.0,
        )
        for flow in found
    ]


def _hosts(problem: Problem, deployment: Deployment, places: list[Point]) -> list[str]:
    """Those that have something to do; who runs operators is larger, proxies are square."""
    sources, operators, proxies = _roles(problem, deployment)
    parts = []
    for host in sorted({*operators, *sources, *proxies}):
        told = [problem.hosts.names[host]]
        for what, names in (("has", sources), ("runs", operators), ("proxy of", proxies)):
            told += [f"{what} {', '.join(names[host])}"] if host in names else []
        kind = "run" if host in operators else "home" if host in sources else "relay"
        size = 8.0 if host in operators else 6.0
        parts.append(mark(places[host], kind, size, "; ".join(told), square=host in proxies))
        x, y = places[host]
        parts.append(text((x, y - 12), shortened(problem.hosts.names[host], 30), "small"))
        if host in operators:
            parts.append(text((x, y + 18), shortened(_listed(operators[host]), 40), "small"))
    return parts


def _roles(problem: Problem, deployment: Deployment) -> tuple[dict[int, list[str]], ...]:
    """By host, the names of base streams in use, of operators, and of queries served."""
    used = set(deployment.sends[:, 2].tolist())
    for operator in deployment.runs[:, 1].tolist():
        used.update(problem.operators.inputs[operator].tolist())
    sources: dict[int, list[str]] = {}
    for stream in sorted(used):
        if problem.streams.home[stream] != NONE:
            home = int(problem.streams.home[stream])
            sources.setdefault(home, []).append(problem.streams.names[stream])
    operators: dict[int, list[str]] = {}
    for host, operator in deployment.runs.tolist():
        operators.setdefault(host, []).append(problem.operators.names[operator])
    proxies: dict[int, list[str]] = {}
    for query, host in enumerate(deployment.serves.tolist()):
        if host != NONE:
            proxies.setdefault(host, []).append(problem.queries.names[query])
    return sources, operators, proxies


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _dot(at: Point) -> str:
    return f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="1.6" style="fill:#bbc"/>'


def _link(start: Point, stop: Point) -> str:
    way = f"M{start[0]:.1f},{start[1]:.1f} L{stop[0]:.1f},{stop[1]:.1f}"
    return f'<path d="{way}" stroke-width="0.4" opacity="0.5"/>'
