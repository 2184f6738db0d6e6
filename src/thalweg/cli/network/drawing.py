"""The network as text: nodes by site, what each has, and the streams between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
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
    return "\n".join([*_lines(found["nodes"]), *_trees(found["nodes"])])


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
    silent = {node["name"] for node in nodes if not node["answers"]}
    for site, members in by_site(nodes).items():
        yield f"site {site}"
        for place, node in enumerate(members):
            is_last = place == len(members) - 1
            state = "" if node["answers"] else "  (does not answer)"
            state = "  (only passes on)" + state if node.get("engine") == "none" else state
            yield f"{'└─' if is_last else '├─'} {node['name']}  {node['http']}{_load(node)}{state}"
            rest = "   " if is_last else "│  "
            for kind, names in names_of(node):
                yield f"{rest} {MARKS[kind]} {names}"
            if (role := node.get("role")) is not None:
                yield f"{rest} {_role_text(role)}"
            if (deciding := node.get("deciding")) is not None:
                yield f"{rest} {_deciding_text(deciding, silent)}"
            for link in node["links"]:
                upto = f" up to {link['watermark']}" if link["watermark"] else ""
                lag = f", {link['lag']}" if link.get("lag") else ""
                trouble = f"  ! {link['error']}" if link["error"] else ""
                told = f"{rows_of(link)}{upto}{lag}{_faithful(link)}{trouble}"
                yield f"{rest} ⇠ {name_of(link)} from {link['from']}: {told}"


def _trees(nodes: list[dict[str, Any]]) -> Iterator[str]:
    """Streams that some have from others than their homes."""
    parents: dict[tuple[str, str], dict[str, str]] = {}  # by stream and home, of each node
    marks: dict[tuple[str, str], dict[str, str]] = {}
    for node in nodes:
        for link in node["links"]:
            if not link.get("fragment"):
                key = link["stream"], link.get("home") or link["from"]
                parents.setdefault(key, {})[node["name"]] = link["from"]
                marks.setdefault(key, {})[node["name"]] = f"{_faithful(link)}{_load(node)}"
    for (stream, home), tree in sorted(parents.items()):
        if any(parent != home for parent in tree.values()):
            yield f"tree of {stream}"
            yield from tree_lines(home, tree, marks[stream, home])


def _load(node: dict[str, Any]) -> str:
    """The share of time in which its ticks have run; told by what it reads."""
    busy = next((link["busy"] for link in node["links"] if link.get("busy") is not None), None)
    return "" if busy is None else f", {busy:.0%} busy"


def _faithful(link: dict[str, Any]) -> str:
    faithful = link.get("fidelity")
    return "" if faithful is None else f", fidelity {faithful:.1%}"


def tree_lines(
    home: str, parents: Mapping[str, str], told: Mapping[str, str] | None = None
) -> Iterator[str]:
    """From the home down, with what is told of each. Who is not below it, since it moves just now,
    comes last."""
    seen = {home}

    def below(node: str, indent: str) -> Iterator[str]:
        children = sorted(n for n, parent in parents.items() if parent == node and n not in seen)
        seen.update(children)
        for child in children:
            is_last = child == children[-1]
            more = (told or {}).get(child, "")
            yield f"{indent}{'└─' if is_last else '├─'} {child}{more}"
            yield from below(child, indent + ("   " if is_last else "│  "))

    yield home
    yield from below(home, "")
    for node in sorted(parents.keys() - seen):
        yield f"?  {node} from {parents[node]}"


def _role_text(role: dict[str, Any]) -> str:
    """A node's part among peers."""
    more = f", {role['shed']:,} shed" if role["shed"] else ""
    more += f", source of {', '.join(role['sources'])}" if role["sources"] else ""
    more += f"; hot: {', '.join(role['hot'])}" if role["hot"] else ""
    more += f"; with partners {', '.join(role['partners'])}" if role["partners"] else ""
    return f"◔ {100 * role['owned']:.1f} % of all values, {role['stored']:,} stored{more}"


def _deciding_text(told: dict[str, Any], silent: Set[str]) -> str:
    """A node's part where nodes decide together where queries run. Who does not answer is named as
    such: the tree is mended within seconds."""

    def named(node: str) -> str:
        return f"{node} (not heard of)" if node in silent else node

    parent = told["parent"]
    place = "root of the coordinators" if parent is None else f"below {named(parent)}"
    others = sorted({n for cluster in told["leads"] for n in cluster} - {told["node"]})
    leads = f", leads {', '.join(map(named, others))}" if others else ""
    count = len(told["zones"])
    zones = f", places {count} {'zone' if count == 1 else 'zones'}" if count else ""
    runs = f", runs {', '.join(told['queries'])}" if told["queries"] else ""
    return f"⚑ {place}{leads}{zones}{runs}"


def name_of(link: dict[str, Any]) -> str:
    """What flows: a stream, or what another node computes."""
    return f"fragment {link['fragment']}" if link.get("fragment") else str(link["stream"])


def rows_of(link: dict[str, Any]) -> str:
    count = link["arrived"]
    return f"{count:,} {'row' if count == 1 else 'rows'}"
