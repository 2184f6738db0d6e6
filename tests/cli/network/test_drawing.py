"""The network as text: trees below the sites."""

from __future__ import annotations

from typing import Any

from thalweg.cli.network.coordinators import told_lines
from thalweg.cli.network.drawing import map_text, tree_lines


def test_a_tree_is_drawn_from_its_home_down() -> None:
    parents = {"b": "home", "r1": "b", "r2": "b", "x": "home"}
    assert list(tree_lines("home", parents)) == ["home", "├─ b", "│  ├─ r1", "│  └─ r2", "└─ x"]


def test_who_is_not_below_the_home_is_not_left_out() -> None:
    assert list(tree_lines("home", {"a": "gone"})) == ["home", "?  a from gone"]


def test_a_map_has_trees_where_streams_do_not_come_straight_from_home() -> None:
    def node(name: str, engine: str, *links: tuple[str, str]) -> dict[str, Any]:
        told = [
            {
                "stream": stream,
                "from": at,
                "home": "home",
                "fragment": None,
                "arrived": 1,
                "watermark": "7",
                "error": None,
            }
            for stream, at in links
        ]
        return {
            "name": name,
            "site": "s",
            "engine": engine,
            "http": "http://x",
            "answers": True,
            "defines": [],
            "links": told,
        }

    nodes = [
        node("home", "shared"),
        node("b", "none", ("S", "home")),
        node("r", "shared", ("S", "b"), ("T", "home")),
    ]
    lines = map_text({"nodes": nodes}).splitlines()
    assert "├─ b  http://x  (only passes on)" in lines
    assert lines[lines.index("tree of S") :] == ["tree of S", "home", "└─ b", "   └─ r"]
    assert "tree of T" not in lines


def test_who_decides_together_about_what() -> None:
    def part(name: str, parent: str | None, leads: list[str], **more: Any) -> dict[str, Any]:
        usual = {"root": "b", "queries": [], "zones": [], "load": 0.0, "capability": 1.0}
        return {"node": name, "parent": parent, "leads": [leads] if leads else [], **usual, **more}

    zones = [{"query": "q", "zone": 3, "at": ["a", "b"]}, {"query": "q", "zone": 7, "at": []}]
    found = [
        part("a", "b", [], queries=["r"], load=0.25),
        part("b", None, ["a", "b", "c"], zones=zones),
        part("c", "b", []),
    ]
    assert list(told_lines(found, [row["node"] for row in found])) == [
        "b, load 0 of 1 cores, root",
        "├─ a, load 0.25 of 1 cores",
        "└─ c, load 0 of 1 cores",
        "query r is run by a",
        "zone q/3 is placed by b: at a, b",
        "zone q/7 is placed by b: not placed yet",
    ]
    usual = {"site": "s", "http": "http://x", "answers": True, "defines": [], "links": []}
    nodes = [{"name": row["node"], "deciding": row, **usual} for row in found]
    lines = map_text({"nodes": nodes}).splitlines()
    assert "│   ⚑ below b, runs r" in lines
    assert "│   ⚑ root of the coordinators, leads a, c, places 2 zones" in lines
