"""The join in any shape, cut, moved and reshaped, makes each combination once."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.adapt.moves.messages.data import NEW, OLD, RowsOf
from thalweg.adapt.moves.processor.dividing import divided
from thalweg.adapt.moves.processor.holding import Holding
from thalweg.adapt.moves.processor.meta import Meta
from thalweg.adapt.moves.query import Query, ids_of
from thalweg.adapt.moves.state.join import RangeJoin
from thalweg.adapt.moves.state.matching import match, reshaped
from thalweg.adapt.moves.state.shapes import all_shapes, left_deep, mjoin, parse
from thalweg.plan.windows import TimeWindow

QUERY = Query(("A", "B", "C"), (TimeWindow(6), TimeWindow(4, 3), TimeWindow(9)), 8, ((0, 2),))
END = 60

streams = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 2), st.integers(0, 3), st.integers(0, 2)),
    max_size=25,
)


def rows_of(drawn):
    """(timestamp, leaf, key, value) as rows by leaf."""
    rows = {leaf: [] for leaf in range(3)}
    for position, (ts, leaf, key, value) in enumerate(sorted(drawn)):
        rows[leaf].append((ts, position, key, value))
    return rows


def brute(rows, query=QUERY):
    found = []
    for parts in product(*[rows[leaf] for leaf in range(3)]):
        if len({p[2] for p in parts}) > 1 or parts[0][3] > parts[2][3]:
            continue
        intervals = [query.windows[leaf].interval(p[0]) for leaf, p in enumerate(parts)]
        start, end = max(i[0] for i in intervals), min(i[1] for i in intervals)
        if start < end and all(i[0] < i[1] for i in intervals):
            key = parts[0][2]
            found.append((start, end, (*[p[3] for p in parts], key), key, 1))
    return sorted(found)


def holding(shape, **meta):
    return Holding(QUERY, Meta(0, 8, 0, **meta), shape)


def feed(target, rows, start, upto):
    for leaf in range(3):
        start_at = target.positions[leaf]
        kept = tuple(r for r in rows[leaf] if start_at <= r[0] < upto)
        target.take(leaf, RowsOf(0, 8, 0, start_at, upto, kept, False, None))
    target.advance()


@settings(max_examples=60, deadline=None)
@given(streams, st.sampled_from(all_shapes(3)), st.integers(1, 30))
def test_every_shape_makes_what_brute_force_makes_whatever_the_ticks(drawn, shape, tick):
    rows = rows_of(drawn)
    made = holding(shape)
    for upto in range(tick, END + tick, tick):
        feed(made, rows, 0, upto)
    assert sorted(made.outbox.rows) == brute(rows)


@settings(max_examples=60, deadline=None)
@given(streams, st.sampled_from(all_shapes(3)), st.sampled_from(all_shapes(3)), st.integers(1, 30))
def test_state_that_is_moved_to_another_shape_goes_on_as_if_nothing_had_been(drawn, a, b, tau):
    rows = rows_of(drawn)
    sender = holding(a)
    feed(sender, rows, 0, tau)
    receiver = holding(b, since=tau)
    receiver.resume(sender.states(), tau)
    feed(receiver, rows, tau, END)
    assert sorted(sender.outbox.rows + receiver.outbox.rows) == brute(rows)


@settings(max_examples=60, deadline=None)
@given(streams, st.sampled_from(all_shapes(3)), st.integers(1, 30))
def test_two_tracks_say_together_what_one_would(drawn, shape, tau):
    """And the old one has nothing to say once the longest window is over."""
    rows = rows_of(drawn)
    sender = holding(shape)
    feed(sender, rows, 0, tau)
    sender.meta.kind, sender.meta.tau = OLD, tau
    receiver = holding(shape, kind=NEW, tau=tau, since=tau)
    feed(sender, rows, tau, tau + QUERY.longest)
    assert sender.is_finished
    feed(receiver, rows, tau, END)
    assert sorted(sender.outbox.rows + receiver.outbox.rows) == brute(rows)


@settings(max_examples=40, deadline=None)
@given(streams, st.sampled_from(all_shapes(3)), st.sampled_from(all_shapes(3)), st.integers(1, 30))
def test_a_shape_that_changes_at_an_instant_changes_no_result(drawn, a, b, at):
    rows = rows_of(drawn)
    made = holding(a)
    feed(made, rows, 0, at)
    made.reshape(b)
    feed(made, rows, at, END)
    assert sorted(made.outbox.rows) == brute(rows)


@settings(max_examples=40, deadline=None)
@given(streams, st.integers(1, 30), st.integers(1, 30))
def test_what_is_read_again_from_the_inputs_is_the_same(drawn, since, tick):
    rows = rows_of(drawn)
    again = holding(mjoin(3), since=since)
    for upto in range(since - QUERY.longest + tick, END + tick, tick):
        feed(again, rows, 0, upto)
    assert sorted(again.outbox.rows) == [r for r in brute(rows) if r[0] >= since]


@settings(max_examples=30, deadline=None)
@given(streams, st.integers(1, 7))
def test_pieces_of_a_range_make_what_the_range_makes(drawn, cut):
    rows = rows_of(drawn)
    whole = holding(left_deep((0, 1, 2)))
    feed(whole, rows, 0, 15)
    left, right = divided(whole, [(0, cut), (cut, 8)])
    for piece, (lo, hi) in ((left, (0, cut)), (right, (cut, 8))):
        from thalweg.adapt.moves.query import bucket_of

        ours = {k: [r for r in v if lo <= bucket_of(r[2], 8) < hi] for k, v in rows.items()}
        feed(piece, ours, 15, END)
    assert sorted(left.outbox.rows + right.outbox.rows) == brute(rows)


def test_states_match_by_what_they_hold():
    """Figure 2 of the source: ((A B) C) moves to (A (B C))."""
    query = Query(("A", "B", "C"), (TimeWindow(9),) * 3)
    sender = RangeJoin(query, parse("((A B) C)", "ABC"))
    rows = [(leaf, (leaf, leaf, 7, leaf)) for leaf in range(3)]
    sender.tick([query.single(leaf, row) for leaf, row in rows], 3, lambda c: True)
    states = {i: dict(t.segments) for i, t in sender.tables.items()}
    found = match(query, parse("(A (B C))", "ABC"), states, 3, 3)
    assert found.taken == ((0,), (1,), (2,))
    assert found.discarded == ((0, 1),)
    assert found.recomputed == ((1, 2),)
    assert [ids_of(c[3]) for c in found.join.tables[1, 2].rows()] == [((-1, -1), (1, 1), (2, 2))]
    same = match(query, parse("((A B) C)", "ABC"), states, 3, 3)
    assert same.recomputed == same.discarded == ()
    assert same.work == 0


def test_unmatched_states_are_recomputed_from_the_bottom_to_the_top():
    query = Query(("A", "B", "C", "D"), (TimeWindow(9),) * 4)
    rows = [(leaf, (0, leaf, 7, leaf)) for leaf in range(4)]
    sender = RangeJoin(query, mjoin(4))
    sender.tick([query.single(leaf, row) for leaf, row in rows], 1, lambda c: True)
    found = reshaped(sender, parse("(((D C) B) A)", "ABCD"), 1, 1)
    assert found.recomputed == ((2, 3), (1, 2, 3))
    assert all(len(list(t.rows())) == 1 for t in found.join.tables.values())


def test_states_without_a_window_are_refused():
    with pytest.raises(ValueError, match="without the windows of B, C"):
        match(QUERY, mjoin(3), {(0,): {}}, 0, 0)


def test_a_window_that_never_forgets_is_refused():
    with pytest.raises(ValueError, match="never forgets"):
        Query(("A", "B"), (TimeWindow(None), TimeWindow(3)))


def test_shapes_are_all_there_and_text_comes_back():
    assert [len(all_shapes(n)) for n in (2, 3, 4)] == [1, 4, 26]
    for shape in all_shapes(4):
        assert parse(shape.text("ABCD"), "ABCD") == shape
    for bad in ("((A B) C", "(A A)", "(A X)", "A", "(A B))"):
        with pytest.raises(ValueError, match=r"shape|bracket|none of|twice"):
            parse(bad, "ABC")
