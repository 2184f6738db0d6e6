from thalweg.engine.kafka import TopicState
from thalweg.engine.sources.kafka_offsets import (
    Position,
    behind_losses,
    losses,
    next_ranges,
    position_of,
)


def test_a_position_survives_the_book():
    for position in (Position(7, "an id"), Position(0, ""), Position(123)):
        assert position_of(position.packed()) == position
    assert position_of(b"41") == Position(41, "")  # of an earlier version


def test_ranges_share_what_a_round_may_read():
    at = {0: Position(0), 1: Position(50), 2: Position(7), 3: Position(0)}
    ends = {0: 1_000, 1: 55, 2: 7}
    assert next_ranges(at, ends, 200) == {0: (0, 100), 1: (50, 55)}
    assert next_ranges(at, ends, 1) == {0: (0, 1), 1: (50, 51)}
    assert next_ranges({2: Position(7)}, ends, 200) == {}


def test_nothing_is_lost_while_positions_are_within_the_topic():
    now = TopicState("t", {0: 10, 1: 0}, {0: 20, 1: 0})
    assert losses({0: Position(10, "t"), 1: Position(0, "t")}, now, "x") == []
    assert losses({0: Position(20)}, now, "x") == []


def test_every_loss_is_told_with_where_it_goes_on():
    now = TopicState("t", {0: 10, 1: 0, 2: 0, 4: 3}, {0: 20, 1: 5, 2: 5, 4: 9})
    at = {
        0: Position(4, "t"),
        1: Position(8, "t"),
        2: Position(2, "another"),
        3: Position(1, "t"),
        4: Position(9, "another"),
    }
    found = losses(at, now, "x")
    assert [(x.partition, x.goes_on_at) for x in found] == [(0, 10), (1, 5), (2, 0), (3, 1), (4, 3)]
    assert [x.reason.split(": ")[-1] for x in found] == [
        "offsets 4 to 9 were removed before they were read",
        "it was cut back",
        "the topic was deleted and created again since offset 2 was read",
        "topic x, partition 3 is gone; it was read up to 1",
        "the topic was deleted and created again since offset 9 was read",
    ]


def test_behind_a_loss_there_is_nothing_more_to_tell():
    now = TopicState("t", {0: 10, 1: 0}, {0: 20, 1: 5})
    at = {0: Position(4, "t"), 1: Position(9, "other"), 2: Position(1, "other")}
    found = losses(at, now, "x")
    behind = behind_losses(found, now)
    assert behind == {0: Position(10, "t"), 1: Position(0, "t")}  # the third is gone for good
    assert losses(behind, now, "x") == []
