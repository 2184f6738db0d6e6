"""When a plan is made anew, and how much of it is carried out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thalweg.adapt.replanning import (
    Gain,
    Policy,
    Priced,
    Use,
    Watch,
    overload_bps,
    reasons,
)

POLICY = Policy()
NODES = {"a": Use(0.5, 1e6, 2e6), "b": Use(0.1, 2e6, 1e6)}


def test_nothing_speaks_for_a_new_plan_while_all_is_as_foreseen() -> None:
    assert reasons(NODES, NODES, {}, POLICY) == []
    nearly = {"a": Use(0.55, 1.1e6, 2e6), "b": NODES["b"]}
    assert reasons(NODES, nearly, {}, POLICY) == []


def test_use_that_differs_is_named_with_what_was_foreseen() -> None:
    now = {"a": Use(0.5, 3e6, 2e6), "b": NODES["b"]}
    assert reasons(NODES, now, {}, POLICY) == ["a uses 3e+06 bit/s out, and 1e+06 were foreseen"]


def test_less_than_foreseen_is_a_reason_too() -> None:
    now = {"a": Use(), "b": NODES["b"]}
    assert len(reasons(NODES, now, {}, POLICY)) == 3


def test_nodes_that_come_and_go_are_reasons() -> None:
    now = {"b": NODES["b"], "c": Use()}
    assert reasons(NODES, now, {}, POLICY) == ["c has come", "a is gone"]


def test_a_node_that_fills_up_is_a_reason_below_the_threshold_too() -> None:
    now = {"a": Use(0.6, 1e6, 2e6), "b": NODES["b"]}
    assert reasons(NODES, now, {}, POLICY) == []
    (told,) = reasons(NODES, now, {"a": Use(0.65, 1e9, 1e9)}, POLICY)
    assert told == "a has filled up: 0.6 of 0.65 cores"


def test_a_node_that_was_planned_to_be_full_is_none() -> None:
    full = {"a": Use(cpu=0.98)}
    assert reasons(full, full, {"a": Use(cpu=1.0)}, POLICY) == []


def test_a_peak_of_one_look_is_smoothed_away_and_a_lasting_change_is_not() -> None:
    watch = Watch(POLICY)
    watch.smoothed(NODES)
    peak = {"a": Use(1.0, 2e6, 4e6), "b": NODES["b"]}
    assert reasons(NODES, watch.smoothed(peak), {}, POLICY) == []
    assert reasons(NODES, watch.smoothed(peak), {}, POLICY)


def test_what_does_not_earn_its_price_within_the_horizon_stays() -> None:
    watch = Watch(Policy(horizon_s=10))
    choice = watch.choose(0.0, [Priced("f", 1_001.0)], Gain(100.0, 0.0))
    assert choice.chosen == ()
    assert choice.why == "it saves 1 kbit in 10 s, and moving costs 1 kbit"
    assert watch.choose(0.0, [Priced("f", 999.0)], Gain(100.0, 0.0)).chosen


def test_relief_of_an_overloaded_node_pays_as_traffic_does() -> None:
    assert overload_bps({"a": Use(2.0, 0, 1_000.0)}, {"a": Use(cpu=0.5)}) == 750.0
    assert overload_bps({"a": Use(2.0, 0, 1_000.0)}, {}) == 0.0
    watch = Watch(Policy(horizon_s=10))
    assert watch.choose(0.0, [Priced("f", 999.0)], Gain(-50.0, 150.0)).chosen


def test_cheap_moves_come_first_and_only_so_many_a_minute() -> None:
    watch = Watch(Policy(moves_a_minute=2, pause_s=1))
    moves = [Priced(n, bits) for n, bits in (("dear", 9.0), ("cheap", 1.0), ("fair", 3.0))]
    first = watch.choose(0.0, moves, Gain(1e9, 0))
    assert [m.what for m in first.chosen] == ["cheap", "fair"]
    assert "2 of 3 moves now" in first.why
    assert watch.left == 1
    assert watch.choose(30.0, moves, Gain(1e9, 0)).chosen == ()
    later = watch.choose(61.0, moves, Gain(1e9, 0))
    assert [m.what for m in later.chosen] == ["dear"]
    assert watch.left == 0


def test_what_has_moved_rests() -> None:
    watch = Watch(POLICY)
    move = [Priced("f", 1.0)]
    assert watch.choose(0.0, move, Gain(1e9, 0)).chosen
    assert watch.choose(599.0, move, Gain(1e9, 0)).why == "all of it has moved within 600 s"
    assert watch.choose(600.0, move, Gain(1e9, 0)).chosen


def test_plans_have_a_pause_between_them() -> None:
    watch = Watch(POLICY)
    assert watch.may_plan(5.0)
    watch.choose(5.0, [], Gain(0, 0))
    assert not watch.may_plan(64.0)
    assert watch.may_plan(65.0)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1e6)), max_size=40),
    st.integers(1, 4),
)
def test_steady_gains_never_move_anything_twice_within_its_rest(
    asked: list[tuple[int, float]], most: int
) -> None:
    """Whatever plans say: a fragment moves once in a rest, and at most so many do in a minute."""
    watch = Watch(Policy(moves_a_minute=most, pause_s=7))
    moved: list[tuple[float, object]] = []
    for look, (what, bits) in enumerate(asked):
        now = look * 7.0
        chosen = watch.choose(now, [Priced(what, bits), Priced(what + 1, bits)], Gain(1e9, 0))
        moved += [(now, m.what) for m in chosen.chosen]
    for now, what in moved:
        assert sum(w == what and abs(t - now) < 600 for t, w in moved) == 1
        assert sum(0 <= now - t < 60 for t, _ in moved) <= most
