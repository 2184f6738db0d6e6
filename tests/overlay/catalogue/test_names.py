"""Which name means which entry."""

from hypothesis import given
from hypothesis import strategies as st

from thalweg.overlay.catalogue.entry import Entry
from thalweg.overlay.catalogue.names import holders, visible_names


def entry(name="q", owner="a:1", born=1, **others):
    fields = {"kind": "query", "text": "SELECT 1", "version": born, "disk": 1, **others}
    return Entry(name=name, owner=owner, born=born, **fields)


ENTRIES = st.lists(
    st.builds(
        entry,
        name=st.sampled_from("qr"),
        owner=st.sampled_from(["a:1", "b:1", "c:1", "d:1"]),
        born=st.integers(1, 4),
        renamed=st.booleans(),
    ),
    unique_by=lambda e: e.key,
)


def test_the_earliest_keeps_the_name_and_the_others_are_called_in_full():
    first, second, third = entry(born=3, owner="b:1"), entry(born=3, owner="c:1"), entry(born=5)
    names = visible_names([third, second, first])
    assert names == {"q": first, "q@a:1": third, "q@c:1": second}


@given(ENTRIES, st.randoms())
def test_names_do_not_depend_on_the_order_of_arrival(entries, random):
    shuffled = list(entries)
    random.shuffle(shuffled)
    assert visible_names(shuffled) == visible_names(entries)


@given(ENTRIES)
def test_every_entry_has_one_name_and_no_other_has_it(entries):
    names = visible_names(entries)
    assert sorted(e.key for e in names.values()) == sorted(e.key for e in entries)
    for name, named in names.items():
        assert name in (named.name, named.full_name)


def test_who_was_renamed_stays_so_when_the_first_is_dropped():
    first, second = entry(born=1), entry(born=2, owner="b:1", renamed=True)
    assert visible_names([first, second]) == {"q": first, "q@b:1": second}
    assert visible_names([second]) == {"q@b:1": second}
    assert holders([second]) == {}
    third = entry(born=4, owner="c:1")
    assert visible_names([second, third]) == {"q": third, "q@b:1": second}
