"""Hot buckets are split, hot keys are named: as within a node."""

from collections import Counter
from itertools import pairwise

import pytest

from thalweg.adapt.moves.directory import Directory, Times
from thalweg.adapt.moves.manager.watch import Watch
from thalweg.adapt.moves.messages.commands import ComputePartitionsToMove
from thalweg.adapt.moves.messages.data import RowsOf
from thalweg.adapt.moves.messages.reports import HotKey, Report
from thalweg.adapt.moves.processor.meta import Meta
from thalweg.adapt.moves.processor.processor import Processor
from thalweg.adapt.moves.processor.weighing import MANY, cuts, hottest
from thalweg.adapt.moves.query import Query, bucket_of
from thalweg.adapt.moves.state.shapes import mjoin
from thalweg.adapt.moves.ways.choosing import CantMove, _nearest
from thalweg.overlay.protocol import Send
from thalweg.plan.windows import TimeWindow

FINE = 1 << 24


def processor(rows, buckets=FINE):
    """With so many rows of each key in its windows."""
    query = Query(("A", "B"), (TimeWindow(500), TimeWindow(500)), buckets)
    found = Processor(query, mjoin(2), Directory(("s", "s"), "u", "m"), Times(), "1")
    found.begin(0, Meta(0, buckets, 0, registered=True))
    (holding,) = found.holdings
    listed = [key for key, count in rows.items() for _ in range(count)]
    whole = tuple((i, i, key, 0) for i, key in enumerate(listed))
    for leaf, read in enumerate((whole, ())):
        start = holding.positions[leaf]
        holding.take(leaf, RowsOf(0, buckets, 0, start, len(listed), read, False, None))
    holding.advance()
    return found


def moved(found, share):
    holding, (lo, hi) = _nearest(found, ComputePartitionsToMove("x", "mslb", "p2", share))
    buckets = holding.query.buckets
    rows = Counter(c[2] for c in holding.join.tables[(0,)].rows())
    return sum(n for key, n in rows.items() if lo <= bucket_of(key, buckets) < hi) / rows.total()


def test_keys_that_share_a_bucket_are_told_apart():
    keys = [k for k in range(20_000) if bucket_of(k, 128) == 40][:20]
    rows = dict.fromkeys(keys, 10)
    assert moved(processor(rows, 128), 0.5) in (0.0, 1.0)  # one bucket: all or nothing
    assert abs(moved(processor(rows, FINE), 0.5) - 0.5) <= 0.1


def test_no_bucket_but_that_of_one_key_has_more_than_a_fraction_of_the_rows():
    counts = Counter(dict.fromkeys(range(400), 3)) + Counter({7: 900})
    starts = [*cuts(counts, FINE), FINE]
    of = {
        at: [k for k in counts if at <= bucket_of(k, FINE) < upto] for at, upto in pairwise(starts)
    }
    heavy = [keys for keys in of.values() if sum(counts[k] for k in keys) > counts.total() / 64]
    assert heavy == [[7]]


def test_a_key_that_no_cut_divides_is_named():
    found = processor({5: 300, 9: 20})
    with pytest.raises(CantMove, match="key 5 has 300 of 320 rows here: no cut"):
        _nearest(found, ComputePartitionsToMove("x", "mslb", "p2", 0.1))
    (effect,) = found.report()
    assert isinstance(effect, Send)
    assert effect.message.hottest == HotKey(5, 300, 320)


def test_few_rows_name_nobody():
    assert hottest(Counter({5: MANY - 1})) is None
    assert hottest(Counter()) is None
    assert hottest(Counter({5: MANY})) == HotKey(5, MANY, MANY)


def test_the_manager_knows_which_node_has_which_hot_key():
    watch = Watch(Times())
    watch.report(0, "p1", Report((), "1", HotKey(5, 300, 320)))
    assert watch.hottest == {"p1": HotKey(5, 300, 320)}
    watch.report(1, "p1", Report((), "1"))
    assert watch.hottest == {}
