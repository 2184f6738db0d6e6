"""Tables by digit: slots, nearness, and one owner per key."""

import pytest

from thalweg.overlay.prefix.table import PER_SLOT, ROWS, PrefixTable, digits
from thalweg.overlay.routing import id_of

NODES = [f"n{i}" for i in range(200)]


def digits_of(address):
    return digits(id_of(address))


def complete_table(address, nodes=NODES):
    table = PrefixTable(address)
    for i, other in enumerate(nodes):
        if other != address:
            table.put(other, 1_000 + i)
    return table


def test_digits_from_the_most_significant():
    assert digits(0xABC0_0000_0000_0001) == (10, 11, 12, *[0] * 12, 1)


def test_a_node_stands_where_its_id_leaves_ones_own():
    table = complete_table("n0")
    for other in NODES[1:]:
        row, digit = table.slot_of(other)
        assert digits_of(other)[:row] == digits_of("n0")[:row]
        assert digits_of(other)[row] == digit != digits_of("n0")[row]
        assert table.nearest((row, digit)) is not None


def test_the_nearest_of_a_slot_are_kept():
    table = PrefixTable("n0")
    slot = table.slot_of("n1")
    fitting = [n for n in NODES[1:] if table.slot_of(n) == slot]
    assert len(fitting) > PER_SLOT
    for i, other in enumerate(fitting):
        table.put(other, 1_000 - i)
    assert table.nearest(slot) == fitting[-1]
    assert [n for n in fitting if n in table] == fitting[-PER_SLOT:]
    assert not table.has_room(fitting[0])


def test_what_is_dropped_is_replaced_by_the_next_nearest():
    table = PrefixTable("n0")
    slot = table.slot_of("n1")
    one, two = [n for n in NODES[1:] if table.slot_of(n) == slot][:2]
    table.put(one, 5)
    table.put(two, 9)
    table.drop(one)
    assert table.nearest(slot) == two
    table.drop(two)
    assert (table.nearest(slot), table.rows) == (None, 0)


@pytest.mark.parametrize("nodes", [NODES[:1], NODES[:2], NODES[:17], NODES])
def test_every_key_has_one_owner_from_everywhere_in_few_hops(nodes):
    tables = {n: complete_table(n, nodes) for n in nodes}
    for key in (id_of(f"key {i}") for i in range(50)):
        owners = set()
        for start in nodes:
            at, hops = start, 0
            while (following := tables[at].next_hop(key)) is not None:
                at, hops = following, hops + 1
                assert hops <= 4  # log_16 200 is 1.9
            owners.add(at)
        assert len(owners) == 1


def test_keys_are_spread_over_the_nodes():
    tables = {n: complete_table(n) for n in NODES}
    owners = []
    for key in (id_of(f"key {i}") for i in range(400)):
        at = "n0"
        while (following := tables[at].next_hop(key)) is not None:
            at = following
        owners.append(at)
    assert len(set(owners)) > 100
    assert ROWS == 16


def test_what_is_shared_fits_the_other():
    table = complete_table("n0")
    for other in NODES[1:20]:
        shared = table.slot_of(other)[0]
        for address in table.shared_with(other):
            row = table.slot_of(address)[0]
            assert row <= shared
            assert digits_of(address)[:row] == digits_of(other)[:row]


def test_one_id_for_two_names_is_an_error():
    table = PrefixTable("n0")
    with pytest.raises(ValueError, match="one id"):
        table.slot_of("n0")
