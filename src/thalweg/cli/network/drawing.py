"""The network as text: nodes by site, what each has, and the streams between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MARKS = {
    "stream": "≋",
    "relation": "▤",
    "table": "▤",
    "view": "◇",
    "query": "ƒ",
    "fragment": "⨝",
    "sink": "→",
}
_MOST = 6  # names of a kind that are written out


def map_text(found: dict[str, Any]) -> str:
    """Sites, their nodes, and what flows in from where."""
    return "\n".join(_lines(found["nodes"]))


def by_site(nodes: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    sites: dict[str, list[dict[str, Any]]] = {}
    for node in nodes:
        sites.setdefault(node["site"], []).append(node)
    return dict(sorted(sites.items()))


def names_of(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a node has, kind by kind."""
    for kind in MARKS:
        names = [d["name"] for d in node["defines"] if d["kind"] == kind]
        if names:
            more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
            yield kind, f"{', '.join(names[:_MOST])}{more}"


def _lines(nodes: list[dict[str, Any]]) -> Iterator[str]:
    for site, members in by_site(nodes).items():
        yield f"site {site}"
        for place, node in enumerate(members):
            is_last = place == len(members) - 1
            state = "" if node["answers"] else "  (does not answer)"
            yield f"{'└─' if is_last else '├─'} {node['name']}  {node['http']}{state}"
            rest = "   " if is_last else "│  "
            for kind, names in names_of(node):
                yield f"{rest} {MARKS[kind]} {names}"
            for link in node["links"]:
                upto = f" up to {link['watermark']}" if link["watermark"] else ""
                lag = f", {link['lag']}" if link.get("lag") else ""
                trouble = f"  ! {link['error']}" if link["error"] else ""
                told = f"{rows_of(link)}{upto}{lag}{trouble}"
                yield f"{rest} ⇠ {name_of(link)} from {link['from']}: {told}"


def name_of(link: dict[str, Any]) -> str:
    """What flows: a stream, or what another node computes."""
    return f"fragment {link['fragment']}" if link.get("fragment") else str(link["stream"])


def rows_of(link: dict[str, Any]) -> str:
    count = link["arrived"]
    return f"{count:,} {'row' if count == 1 else 'rows'}"
