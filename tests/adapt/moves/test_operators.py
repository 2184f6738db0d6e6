"""Aggregates and DISTINCT on a partitioned join: below its union, above it, and on the move."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.adapt.moves.directory import Directory, Times
from thalweg.adapt.moves.grouping import Above, added_up
from thalweg.adapt.moves.messages.commands import ComputePartitionsToMove, PartitionsToMove, Refused
from thalweg.adapt.moves.messages.data import RowsOf
from thalweg.adapt.moves.operators import COUNT, MAX, MIN, SUM, Groups, Operator
from thalweg.adapt.moves.processor.holding import Holding
from thalweg.adapt.moves.processor.meta import Meta
from thalweg.adapt.moves.processor.processor import Processor
from thalweg.adapt.moves.query import Query
from thalweg.adapt.moves.state.shapes import all_shapes, mjoin
from thalweg.adapt.moves.ways import WAYS
from thalweg.overlay.protocol import Persist, Send
from thalweg.plan.windows import TimeWindow

END = 40
WINDOWS = (TimeWindow(5), TimeWindow(7, 4))
SUMS = ((COUNT, -1), (SUM, 0), (MIN, 1), (MAX, 1))
rows = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2), st.integers(0, 3)), max_size=12)
operators = st.sampled_from(
    [Operator((2,), SUMS), Operator((0, 2), ((COUNT, -1),)), Operator((1, 2)), Operator((2,))]
)


def query(operator):
    return Query(("A", "B"), WINDOWS, 8, operator=operator)


def numbered(drawn):
    return [[(ts, i, key, value) for i, (ts, key, value) in enumerate(sorted(d))] for d in drawn]


def said_by_brute_force(operator, inputs):
    """The operator on the snapshot of each instant, and what changes between them."""
    fold = {SUM: sum, MIN: min, MAX: max, COUNT: len}
    before, changes = set(), []
    for instant in range(END):
        live = [
            [r for r in rows if w.interval(r[0])[0] <= instant < w.interval(r[0])[1]]
            for rows, w in zip(inputs, WINDOWS, strict=True)
        ]
        groups = {}
        for a, b in product(*live):
            if a[2] == b[2]:
                row = (a[3], b[3], a[2])
                groups.setdefault(tuple(row[k] for k in operator.keys), []).append(row)
        now = {
            (*group, *[fold[f]([row[max(c, 0)] for row in found]) for f, c in operator.calls])
            for group, found in groups.items()
        }
        changes += [(instant, row, 1) for row in now - before]
        changes += [(instant, row, -1) for row in before - now]
        before = now
    return Counter(changes)


def holding(operator, shape, **meta):
    return Holding(query(operator), Meta(0, 8, 0, **meta), shape)


def feed(target, inputs, upto):
    for leaf, rows in enumerate(inputs):
        start = target.positions[leaf]
        kept = tuple(r for r in rows if start <= r[0] < upto)
        target.take(leaf, RowsOf(0, 8, 0, start, upto, kept, False, None))
    target.advance()


def changes(*holdings):
    return Counter((r[0], r[2], r[4]) for h in holdings for r in h.outbox.rows)


@settings(max_examples=60, deadline=None)
@given(rows, rows, operators, st.integers(1, 30))
def test_an_operator_below_the_union_says_what_brute_force_says(a, b, operator, tick):
    inputs = numbered([a, b])
    made = holding(operator, mjoin(2))
    for upto in range(tick, END + tick, tick):
        feed(made, inputs, min(upto, END))
    assert changes(made) == said_by_brute_force(operator, inputs)


@settings(max_examples=60, deadline=None)
@given(rows, rows, operators, st.integers(1, 30), st.sampled_from(all_shapes(2)))
def test_its_state_goes_on_elsewhere_from_an_instant_on(a, b, operator, tau, shape):
    inputs = numbered([a, b])
    sender = holding(operator, mjoin(2))
    feed(sender, inputs, tau)
    receiver = holding(operator, shape, since=tau, acked=tau)
    receiver.resume(sender.states(), tau)
    feed(receiver, inputs, END)
    assert changes(sender, receiver) == said_by_brute_force(operator, inputs)


@settings(max_examples=60, deadline=None)
@given(rows, rows, operators, st.integers(1, 30))
def test_its_state_is_made_again_from_windows_or_from_inputs(a, b, operator, tau):
    inputs = numbered([a, b])
    sender = holding(operator, mjoin(2))
    feed(sender, inputs, tau)
    sender.acknowledge(tau)
    sender.purge()
    windows = {i: s for i, s in sender.states().items() if len(i) == 1}
    restarted = holding(operator, mjoin(2), acked=tau)
    restarted.resume(windows, tau)
    replayed = holding(operator, mjoin(2), since=tau, acked=tau)
    expected = said_by_brute_force(operator, inputs)
    for made in (restarted, replayed):
        feed(made, inputs, END)
        assert changes(made) == Counter({c: n for c, n in expected.items() if c[0] >= tau})


def test_groups_that_cross_buckets_stand_above_the_union():
    with pytest.raises(ValueError, match="let it stand above the union"):
        query(Operator((0,), SUMS))
    assert query(Operator((0,), SUMS, above=True)).above is not None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [(lambda: Operator((2,), (("avg", 0),)), "avg can't"), (lambda: Operator(()), "no column")],
)
def test_what_is_no_operator_says_why(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_without_keys_the_row_stays_when_all_is_gone():
    groups = Groups(Operator((), ((COUNT, -1), (SUM, 0)), above=True))
    assert groups.apply([(3, (5,), 2), (7, (5,), -2)]) == [
        (3, (2, 10), 1),
        (7, (2, 10), -1),
        (7, (0, None), 1),
    ]


def test_partial_results_are_equal_rows_of_a_key_added_up():
    assert added_up([(1, 5, (2,), 7, 1), (1, 5, (2,), 7, 1), (1, 5, (2,), 8, 1)]) == [
        (1, 5, (2,), 7, 2),
        (1, 5, (2,), 8, 1),
    ]


def test_groups_above_the_union_survive_a_restart():
    operator = Operator((0,), SUMS[:2], above=True)
    first, disk = Above(operator), {}
    _, effects = first.apply([(1, (4, 10), 1), (1, (5, 1), 1), (2, (5, 1), -1)])
    for effect in effects:
        assert isinstance(effect, Persist)
        disk[effect.key] = effect.value
    again = Above(operator)
    again.restore({k: v for k, v in disk.items() if v is not None})
    assert again.apply([(3, (4, 2), 1)])[0] == [(3, (4, 1, 10), -1), (3, (4, 2, 12), 1)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("above", [True, False])
def test_an_operator_below_refuses_ptlb_and_says_what_works(way, above):
    processor = Processor(
        query(Operator((2,), SUMS, above=above)),
        mjoin(2),
        Directory(("s", "s"), "u", "m"),
        Times(),
        "1",
    )
    processor.begin(0, Meta(0, 8, 0, registered=True))
    asked = ComputePartitionsToMove("x", way, "p2", 0.5)
    (answer,) = [
        e.message for e in WAYS[way].processor(processor, 1, "m", asked) if isinstance(e, Send)
    ]
    if way == "ptlb" and not above:
        assert isinstance(answer, Refused)
        assert "above the union, or use mslb or precopy" in answer.why
    else:
        assert isinstance(answer, PartitionsToMove)
