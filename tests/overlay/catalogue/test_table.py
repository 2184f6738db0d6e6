"""Tables of entries: any order of merging ends the same, and comparing finds what is lacking."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.catalogue.test_names import entry

from thalweg.overlay.catalogue.entry import grave
from thalweg.overlay.catalogue.table import Mark, Table
from thalweg.overlay.digests import BUCKETS


def written(name, owner, version, disk):
    """What an owner wrote follows from the version: ranks that are equal are equal entries."""
    dropped = version % 3 == 0
    text = "" if dropped else f"text {version} {disk}"
    fields = {"born": 1, "version": version, "disk": disk, "text": text, "dropped": dropped}
    return entry(name=name, owner=owner, **fields)


ENTRIES = st.lists(
    st.builds(
        written,
        st.sampled_from([f"q{i}" for i in range(10)]),
        st.sampled_from(["a:1", "b:1"]),
        st.integers(1, 6),
        st.integers(1, 2),
    )
)


def table_of(entries):
    table = Table()
    for one in entries:
        table.merge(one)
    return table


def contents(table):
    return sorted(table, key=lambda e: e.key)


@given(ENTRIES, st.randoms())
def test_order_and_repetition_do_not_matter(entries, random):
    shuffled = entries * 2
    random.shuffle(shuffled)
    one, other = table_of(entries), table_of(shuffled)
    assert contents(one) == contents(other)
    assert one.hashes == other.hashes
    assert one.hash == other.hash
    assert one.clock == other.clock


@given(ENTRIES, ENTRIES)
def test_one_comparison_makes_two_tables_equal(ours, theirs):
    one, other = table_of(ours), table_of(theirs)
    buckets = one.differing(other.hashes)
    assert (not buckets) == (contents(one) == contents(other))
    lacking, wanted = one.compare(buckets, other.marks(buckets))
    for given_entry in lacking:
        assert other.merge(given_entry)
    for key in wanted:
        assert one.merge(other.get(key))
    assert contents(one) == contents(other)


def test_an_older_version_is_no_news_and_neither_is_what_was_dropped():
    table = table_of([written("q", "a:1", 3, 1)])
    assert table.get(("q", "a:1")).dropped
    assert not table.merge(written("q", "a:1", 2, 9))
    assert not table.merge(written("q", "a:1", 3, 1))
    assert table.merge(written("q", "a:1", 4, 1))


def test_entries_of_one_name_are_found_together():
    table = table_of([written("q", o, v, 1) for o, v in (("a:1", 1), ("b:1", 2), ("c:1", 3))])
    assert [e.owner for e in table.named("q")] == ["a:1", "b:1"]  # c:1 has dropped it
    assert table.named("r") == []


def test_nonsense_from_others_does_no_harm():
    table = table_of([written("q", "a:1", 1, 1)])
    assert table.differing((1, 2, 3)) == tuple(range(BUCKETS))
    assert table.marks((-1, 99, 10**9)) == ()
    lacking, wanted = table.compare((-1, 99), (Mark("r", "b:1", 1, 1),))
    assert (lacking, wanted) == ([], [("r", "b:1")])


def test_a_grave_covers_what_its_owner_wrote_before_in_any_order():
    early, late = written("q", "a:1", 2, 1), written("r", "a:1", 5, 1)
    others = written("s", "b:1", 1, 1)
    buried = grave("a:1", 4)
    for order in permutations([early, late, others, buried]):
        table = table_of(order)
        assert sorted(e.name for e in table.standing()) == ["r", "s"]
        assert table.named("q") == []
    assert not table.merge(grave("a:1", 3))
    assert table.merge(grave("a:1", 5))
    assert [e.name for e in table.standing()] == ["s"]
