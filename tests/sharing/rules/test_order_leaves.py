from tests.sharing.drawing import CATALOG

from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import NOW
from thalweg.sharing.block import Leaf
from thalweg.sharing.rules.order_leaves import column_places, leaf_orders


def leaf(name: str) -> Leaf:
    stream = CATALOG.find(name)
    assert isinstance(stream, StreamDef)
    return Leaf(stream, NOW)


def test_leaves_are_ordered_by_name_and_columns_move_along() -> None:
    leaves = [leaf("B"), leaf("A")]
    assert leaf_orders(leaves) == ((1, 0),)
    assert column_places(leaves, (1, 0)) == [5, 6, 7, 0, 1, 2, 3, 4]


def test_all_orders_of_one_streams_leaves_are_tried() -> None:
    assert leaf_orders([leaf("A"), leaf("B"), leaf("A")]) == ((0, 2, 1), (2, 0, 1))


def test_many_leaves_of_one_stream_are_taken_as_they_stand() -> None:
    assert leaf_orders([leaf("A")] * 5) == ((0, 1, 2, 3, 4),)
