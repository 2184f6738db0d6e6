"""Which fragment goes from whom to whom."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from thalweg.adapt.balancing.fragments import (
    WAYS,
    Decision,
    FragmentBalancer,
    FragmentLoad,
    NodeLoad,
    Settings,
)

SETTINGS = Settings(threshold=0.25, pause_s=60, looks=2)


def load(name: str, cores: float, state: float = 1e6, reach_s: float | None = 3600) -> FragmentLoad:
    return FragmentLoad(name, cores, state, 1e3, reach_s)


def node(name: str, *fragments: FragmentLoad, own: float = 0.0, busy: bool = False) -> NodeLoad:
    return NodeLoad(name, own + sum(f.cores for f in fragments), fragments, busy)


def decided(*loads: NodeLoad, looks: int = 2, now_s: float = 0) -> Decision | None:
    balancer = FragmentBalancer(SETTINGS)
    found = [balancer.decide(now_s + i, loads) for i in range(looks)]
    assert not any(found[:-1])
    return found[-1]


def test_the_most_loaded_gives_half_of_what_divides_them_to_the_least_loaded() -> None:
    full = node("n1", load("small", 0.1), load("half", 0.4), load("large", 0.7))
    found = decided(full, node("n2", own=0.2), node("n3", own=0.4))
    assert found is not None
    assert (found.publication, found.at, found.to) == ("half", "n1", "n2")
    assert "n1 has 1.20 cores of ticks, n2 0.20" in found.why


def memory(load: NodeLoad, used: float, limit: float | None) -> NodeLoad:
    return msgspec.structs.replace(load, memory_bytes=used, memory_limit=limit)


def test_a_node_whose_memory_is_full_gives_its_largest_state_to_who_has_room() -> None:
    parts = load("hot", 0.5, 1e6), load("large", 0.1, 300e6), load("huge", 0.0, 900e6)
    full = memory(node("n1", *parts), 950e6, 1e9)
    busy = memory(node("n2", own=2.0), 200e6, 1e9)
    found = decided(full, busy, memory(node("n3"), 880e6, 1e9))
    assert found is not None
    assert (found.publication, found.at, found.to) == ("large", "n1", "n2")
    assert found.why.startswith("n1 uses 950 of 1,000 MB of memory; 300.0 MB of state")
    assert decided(full, memory(node("n2"), 890e6, 1e9)) is not None  # what is small enough
    unlimited = decided(full, memory(node("n2"), 9e9, None))
    assert unlimited is not None
    assert unlimited.publication == "huge"


def test_what_would_only_change_who_has_too_much_stays() -> None:
    assert decided(node("n1", load("all", 0.8)), node("n2")) is None


def test_what_is_nearly_even_stays() -> None:
    assert decided(node("n1", load("a", 0.3), load("b", 0.3)), node("n2", own=0.45)) is None


def test_one_look_is_not_enough() -> None:
    assert decided(node("n1", load("a", 0.3), load("b", 0.3)), node("n2"), looks=1) is None


def test_nothing_moves_while_something_does_nor_soon_afterwards() -> None:
    full, empty = node("n1", load("a", 0.3), load("b", 0.3)), node("n2")
    assert decided(full, node("n2", busy=True)) is None
    balancer = FragmentBalancer(SETTINGS)
    assert [balancer.decide(t, (full, empty)) is None for t in (0, 5, 10, 15)] == [
        True, False, True, True,
    ]  # fmt: skip
    assert balancer.decide(66, (full, empty)) is not None


def test_the_way_is_the_one_that_costs_the_least() -> None:
    def way(fragment: FragmentLoad) -> str:
        found = decided(node("n1", fragment, load("b", 0.3)), node("n2"))
        assert found is not None
        assert found.publication == fragment.publication
        return found.way

    linear = msgspec.structs.replace(load("a", 0.3, state=1e9, reach_s=1), linear=True)
    assert way(linear) == "ptlb"
    assert way(load("a", 0.3, state=1e9, reach_s=1)) == "replay"
    assert way(load("a", 0.3, state=1e9, reach_s=None)) == "precopy"
    assert way(load("a", 0.3, state=1e9, reach_s=86_400)) == "precopy"


def test_a_way_that_is_asked_for_is_the_only_one_and_what_it_cannot_move_stays() -> None:
    def way(only: str, *, linear: bool) -> str | None:
        part = msgspec.structs.replace(load("a", 0.3), linear=linear)
        balancer = FragmentBalancer(replace(SETTINGS, ways=(only,), looks=1))
        found = balancer.decide(0, (node("n1", part, own=0.3), node("n2")))
        return None if found is None else found.way

    assert [way(w, linear=True) for w in WAYS] == ["precopy", "mslb", "ptlb", None]
    assert [way(w, linear=False) for w in WAYS] == ["precopy", "mslb", None, "replay"]
