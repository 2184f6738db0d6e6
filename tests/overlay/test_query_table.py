"""Query tables: any order of merging ends the same, and tombstones win."""

from hypothesis import given
from hypothesis import strategies as st

from thalweg.overlay.digests import BUCKETS
from thalweg.overlay.query_table import QueryTable, Record

RECORDS = st.lists(
    st.builds(
        lambda i, dropped: Record(f"q{i}", "" if dropped else f"text {i}", dropped),
        st.integers(0, 40),
        st.booleans(),
    )
)


def table_of(records):
    table = QueryTable()
    for record in records:
        table.merge(record)
    return table


def contents(table):
    return sorted((r.id, r.text, r.dropped) for r in table)


@given(RECORDS, st.randoms())
def test_order_and_repetition_do_not_matter(records, random):
    shuffled = records * 2
    random.shuffle(shuffled)
    one, other = table_of(records), table_of(shuffled)
    assert contents(one) == contents(other)
    assert one.hashes == other.hashes
    assert one.hash == other.hash


@given(RECORDS, RECORDS)
def test_hashes_tell_different_tables_apart_and_differences_are_found(ours, theirs):
    one, other = table_of(ours), table_of(theirs)
    same = contents(one) == contents(other)
    assert (one.hash == other.hash) == same
    buckets = one.differing(other.hashes)
    assert (not buckets) == same
    # What each sends beyond what the other has makes them equal.
    for_one = other.beyond(buckets, one.in_buckets(buckets))
    for_other = one.beyond(buckets, other.in_buckets(buckets))
    for record in for_one:
        assert one.merge(record)
    for record in for_other:
        assert other.merge(record)
    assert contents(one) == contents(other)


def test_a_dropped_query_does_not_come_back():
    table = table_of([Record("q", "", dropped=True)])
    assert not table.merge(Record("q", "SELECT 1"))
    assert table.standing == []
    assert table.get("q").dropped


def test_merging_says_whether_it_was_news():
    table = QueryTable()
    assert table.merge(Record("q", "SELECT 1"))
    assert not table.merge(Record("q", "SELECT 1"))
    assert table.standing == ["q"]
    assert table.merge(Record("q", "", dropped=True))
    assert len(table) == 1
    assert len(table.hashes) == BUCKETS
