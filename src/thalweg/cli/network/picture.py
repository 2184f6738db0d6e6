"""The network as SVG: sites as columns, their nodes, and arrows for the streams between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from thalweg.cli.network.drawing import MARKS, by_site, name_of, names_of, rows_of
from thalweg.placement.drawing.marks import document, shortened, text

_WIDTH, _BETWEEN, _EDGE = 230.0, 210.0, 30.0  # of a node; from column to column; around all
_LINE, _HEAD, _APART = 15.0, 44.0, 46.0
_TITLE = 34.0  # above a site's nodes
_NAMED = 3  # streams of an arrow that are told


class _Box(NamedTuple):
    x: float
    y: float
    height: float
    column: int

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def map_svg(found: dict[str, Any]) -> str:
    """Of what the service tells about the network, with the lags of its links."""
    sites = by_site(found["nodes"])
    boxes: dict[str, _Box] = {}
    frames, bottoms = [], [0.0]
    for column, (site, members) in enumerate(sites.items()):
        x, y = _EDGE + column * (_WIDTH + _BETWEEN), _EDGE + _TITLE
        for node in members:
            height = _HEAD + _LINE * len(_contents(node))
            boxes[node["name"]] = _Box(x, y, height, column)
            y += height + _APART
        bottoms.append(y - _APART)
        frames.append(_frame(site, x, y - _APART))
    parts = [*frames, *(_node(n, boxes[n["name"]]) for ns in sites.values() for n in ns)]
    parts += _arrows(found["nodes"], boxes)
    width = 2 * _EDGE + len(sites) * (_WIDTH + _BETWEEN)
    return document(width, max(bottoms) + 2 * _EDGE, parts)


def _contents(node: dict[str, Any]) -> list[str]:
    return [f"{MARKS[kind]} {names}" for kind, names in names_of(node)]


def _frame(site: str, x: float, bottom: float) -> str:
    edge, top = 12.0, _EDGE
    return (
        f'<rect x="{x - edge}" y="{top - 6}" width="{_WIDTH + 2 * edge}"'
        f' height="{bottom - top + edge + 6:.1f}" rx="8" style="fill:none;stroke-dasharray:4 3"/>'
        + text((x + _WIDTH / 2, top + 12), f"site {shortened(site)}")
    )


def _node(node: dict[str, Any], box: _Box) -> str:
    kind = "run" if node["answers"] else "full"
    middle = box.x + _WIDTH / 2
    state = "" if node["answers"] else " (does not answer)"
    style = "" if node["answers"] else ' style="fill:#fbe3e3;stroke:#c33"'
    parts = [
        f'<rect class="{kind}" x="{box.x}" y="{box.y}" width="{_WIDTH}" height="{box.height}"'
        f' rx="5"{style}><title>{escape(node["http"])}</title></rect>',
        text((middle, box.y + 17), f"{shortened(node['name'])}{state}"),
        text((middle, box.y + 32), node["http"], "small"),
    ]
    for number, line in enumerate(_contents(node)):
        at = (middle, box.y + _HEAD + 4 + number * _LINE)
        parts.append(text(at, shortened(line, 36), "small"))
    return "".join(parts)


def _arrows(nodes: list[dict[str, Any]], boxes: dict[str, _Box]) -> Iterator[str]:
    """One for each pair of nodes, with all streams that go that way."""
    for node in nodes:
        senders: dict[str, list[dict[str, Any]]] = {}
        for link in node["links"]:
            senders.setdefault(link["from"], []).append(link)
        for place, (sender, links) in enumerate(sorted(senders.items())):
            if sender in boxes:
                yield _arrow(boxes[sender], boxes[node["name"]], links, place, len(senders))


def _arrow(start: _Box, end: _Box, links: list[dict[str, Any]], place: int, arrows: int) -> str:
    """From side to side; within a column, around its right side. Those that come to one node end
    one below the other."""
    y1, y2 = start.middle, end.y + end.height * (place + 1) / (arrows + 1)
    if start.column == end.column:
        x1 = x2 = start.x + _WIDTH
        out = x1 + _BETWEEN / 3
        bend1, bend2 = out, out
    elif start.column < end.column:
        x1, x2 = start.x + _WIDTH, end.x - 2
        bend1, bend2 = x1 + _BETWEEN / 2, x2 - _BETWEEN / 2
    else:
        x1, x2 = start.x, end.x + _WIDTH + 2
        bend1, bend2 = x1 - _BETWEEN / 2, x2 + _BETWEEN / 2
    told = [_told(link) for link in links[:_NAMED]]
    if len(links) > _NAMED:
        told.append(f"and {len(links) - _NAMED} more streams")
    has_trouble = any(link["error"] for link in links)
    style = ' style="stroke:#c33"' if has_trouble else ""
    way = f"M{x1:.1f},{y1:.1f} C{bend1:.1f},{y1:.1f} {bend2:.1f},{y2:.1f} {x2:.1f},{y2:.1f}"
    title = "; ".join(
        _told(link) + (f": {link['error']}" if link["error"] else "") for link in links
    )
    parts = [
        f'<path d="{way}" stroke-width="1.5" marker-end="url(#tip)"{style}>'
        f"<title>{escape(title)}</title></path>"
    ]
    # A cubic is half-way between its ends where its parameter is one half.
    x = (x1 + 3 * bend1 + 3 * bend2 + x2) / 8
    y = (y1 + y2) / 2 - 6 - _LINE * (len(told) - 1)
    parts += [text((x, y + i * _LINE), line, "small") for i, line in enumerate(told)]
    return "".join(parts)


def _told(link: dict[str, Any]) -> str:
    lag = f", {link['lag']}" if link.get("lag") else ""
    return f"{shortened(name_of(link))}: {rows_of(link)}{lag}"
