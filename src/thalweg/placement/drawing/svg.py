"""SVG of a deployment, or of one query's plan, as text."""

from __future__ import annotations

from math import cos, hypot, isfinite, pi, sin
from xml.sax.saxutils import escape

from thalweg.placement.cost import load_of
from thalweg.placement.deployment import Deployment
from thalweg.placement.drawing.flows import flows
from thalweg.placement.drawing.marks import Point, document, shortened, text
from thalweg.placement.explain import Node, sending, title
from thalweg.placement.problem import Problem
from thalweg.placement.units import bps, percent

_WIDTH, _HEIGHT = 160, 44  # of a box
_ROW, _COLUMN = 70, 350
_NEARLY_FULL = 0.95


def deployment_svg(problem: Problem, deployment: Deployment) -> str:
    """Hosts in a circle with their CPU as a bar; an arrow is as wide as its traffic is heavy."""
    count = len(problem.hosts)
    radius = max(140.0, count * (_WIDTH + 20) / (2 * pi))
    middle = radius + _WIDTH / 2 + 20
    angles = [2 * pi * host / count for host in range(count)]
    places = [(middle + radius * cos(a), middle + radius * sin(a)) for a in angles]
    found = flows(problem, deployment)
    heaviest = max((flow.rate_bps for flow in found), default=0.0) or 1.0
    parts = [
        _bend(
            places[flow.source],
            places[flow.target],
            (middle, middle),
            1 + 5 * flow.rate_bps / heaviest,
            f"{problem.hosts.names[flow.source]} to {problem.hosts.names[flow.target]}: "
            f"{len(flow.streams)} streams, {bps(flow.rate_bps)}",
        )
        for flow in found
    ]
    load = load_of(problem, deployment)
    runs = deployment.runs[:, 0].tolist()
    for host, place in enumerate(places):
        capacity = float(problem.hosts.cpu[host])
        note = f"CPU {percent(load.cpu[host], capacity)}, runs {runs.count(host)}"
        parts.append(_box(place, "", problem.hosts.names[host], note))
        if isfinite(capacity) and capacity > 0:
            parts.append(_bar(place, min(1.0, float(load.cpu[host]) / capacity)))
    return document(2 * middle, 2 * middle, parts)


def plan_svg(problem: Problem, query: int, plan: Node) -> str:
    """One query's plan, from base streams on the left to the query on the right."""
    drawing = _Plan(problem, _depth(plan))
    end = drawing.draw(plan, drawing.depth)
    out = (end[0] + _COLUMN - _WIDTH, end[1])
    drawing.parts.append(_straight((end[0] + _WIDTH / 2, end[1]), (out[0] - 4, out[1])))
    name, stream = problem.queries.names[query], problem.streams.names[plan.stream]
    drawing.parts.append(text((out[0] + 40, out[1] + 4), name))
    between = ((end[0] + _WIDTH / 2 + out[0]) / 2, end[1] - 6)
    drawing.parts.append(text(between, shortened(stream), "small"))
    return document(out[0] + 100, 20 + drawing.rows * _ROW, drawing.parts)


class _Plan:
    def __init__(self, problem: Problem, depth: int) -> None:
        self.problem = problem
        self.depth = depth
        self.rows = 0
        self.parts: list[str] = []

    def draw(self, node: Node, column: int) -> Point:
        """Below each other where base streams enter, and between its inputs what takes them."""
        ends = [self.draw(arc.node, column - 1) for arc in node.inputs]
        if ends:
            y = sum(end[1] for end in ends) / len(ends)
        else:
            y = 20 + _HEIGHT / 2 + self.rows * _ROW
            self.rows += 1
        x = 20 + _WIDTH / 2 + column * _COLUMN
        for arc, end in zip(node.inputs, ends, strict=True):
            start, stop = (end[0] + _WIDTH / 2, end[1]), (x - _WIDTH / 2 - 4, y)
            self.parts.append(_straight(start, stop, 2.5 if arc.sent else 1.0))
            told = sending(self.problem, arc, node.host) or f"{arc.node.kind} here"
            if arc.sent:
                where = ((start[0] + stop[0]) / 2, (start[1] + stop[1]) / 2 - 6)
                self.parts.append(text(where, shortened(told, 34), "small"))
        self.parts.append(_box((x, y), node.kind, *title(self.problem, node)))
        return x, y


def _depth(node: Node) -> int:
    return 1 + max((_depth(arc.node) for arc in node.inputs), default=-1)


def _box(middle: Point, kind: str, head: str, note: str) -> str:
    x, y = middle
    return (
        f'<rect class="{kind}" x="{x - _WIDTH / 2:.1f}" y="{y - _HEIGHT / 2:.1f}"'
        f' width="{_WIDTH}" height="{_HEIGHT}" rx="5"><title>{escape(head)}</title></rect>'
        + text((x, y - 3), shortened(head))
        + text((x, y + 13), shortened(note, 30), "small")
    )


def _bar(middle: Point, share: float) -> str:
    kind = "full" if share > _NEARLY_FULL else "bar"
    x, y = middle[0] - _WIDTH / 2, middle[1] + _HEIGHT / 2 - 4
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{_WIDTH * share:.1f}" height="4"/>'


def _straight(start: Point, stop: Point, width: float = 1.0) -> str:
    way = f"M{start[0]:.1f},{start[1]:.1f} L{stop[0]:.1f},{stop[1]:.1f}"
    return f'<path d="{way}" stroke-width="{width}" marker-end="url(#tip)"/>'


def _bend(start: Point, stop: Point, middle: Point, width: float, told: str) -> str:
    """Towards the middle and a little to the side, so that both directions can be told apart."""
    across = (stop[1] - start[1], start[0] - stop[0])
    length = hypot(*across) or 1.0
    bent = tuple(middle[i] + 40 * across[i] / length for i in (0, 1))
    way = f"M{start[0]:.1f},{start[1]:.1f} Q{bent[0]:.1f},{bent[1]:.1f} {stop[0]:.1f},{stop[1]:.1f}"
    return (
        f'<path d="{way}" stroke-width="{width:.1f}" opacity="0.6" marker-mid="url(#tip)">'
        f"<title>{escape(told)}</title></path>"
    )
