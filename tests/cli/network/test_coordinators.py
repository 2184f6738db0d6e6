"""Who decides where queries run, as people see it."""

from __future__ import annotations

from typing import Any

from thalweg.cli.network.coordinators import told_lines
from thalweg.cli.network.drawing import map_text

NAMES = ["n1", "n2", "n3"]
LOAD = ", load 0 of 1 cores"


def row(node: str, parent: str | None, *zones: tuple[str, int], leads: Any = ()) -> dict[str, Any]:
    told = [{"query": query, "zone": zone, "at": ["n1"]} for query, zone in zones]
    return {"node": node, "parent": parent, "load": 0, "capability": 1.0} | {
        "queries": [],
        "zones": told,
        "leads": [list(leads)],
    }


def test_all_that_are_heard_of_stand_in_the_tree() -> None:
    found = [row("n1", "n2"), row("n2", None), row("n3", "n2")]
    assert list(told_lines(found, NAMES)) == [f"n2{LOAD}, root", f"├─ n1{LOAD}", f"└─ n3{LOAD}"]


def test_a_node_that_is_not_heard_of_is_named() -> None:
    found = [row("n1", None), row("n3", "n1")]
    assert list(told_lines(found, NAMES))[-1] == "n2 is not heard of"


def test_without_its_root_the_tree_says_that_nobody_decides() -> None:
    lines = list(told_lines([row("n1", "n2"), row("n3", "n2")], NAMES))
    assert lines[0].startswith("nobody decides now: n2 is not heard of")
    assert lines[1:] == ["n2, not heard of", f"├─ n1{LOAD}", f"└─ n3{LOAD}"]


def test_who_decides_now_is_named_while_others_still_look_for_it() -> None:
    lines = list(told_lines([row("n1", None), row("n3", "n2")], NAMES))
    assert lines[0].startswith("n1 decides now; who is below n2")
    assert f"n1{LOAD}, root" in lines


def test_a_zone_that_changes_its_coordinator_is_told_once() -> None:
    found = [row("n1", None, ("q", 5)), row("n3", "n1", ("q", 5))]
    (zone,) = [line for line in told_lines(found, NAMES[::2]) if line.startswith("zone")]
    assert zone == "zone q/5 is placed by n1 and n3 (until one of them gives it up): at n1"


def test_the_map_marks_coordinators_that_do_not_answer() -> None:
    def node(name: str, told: dict[str, Any] | None) -> dict[str, Any]:
        known = {"name": name, "site": "here", "http": "", "defines": [], "links": []}
        return {**known, "answers": told is not None, "deciding": told}

    text = map_text({"nodes": [node("n1", row("n1", "n2", leads=NAMES)), node("n2", None)]})
    assert "⚑ below n2 (not heard of), leads n2 (not heard of), n3" in text
