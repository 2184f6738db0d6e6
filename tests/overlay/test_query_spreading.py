"""QuerySpreading, step by step, on a made-up overlay."""

import pytest

from thalweg.overlay.protocol import Call, Deliver, Init, Persist, Receive, Send
from thalweg.overlay.query_spreading import (
    Differs,
    Drop,
    Learn,
    Learned,
    QuerySpreading,
    Refused,
    Spread,
    Submit,
)
from thalweg.overlay.query_table import Record


class Line:
    """Scopes are numbers: 9 covers 5 covers 2; None covers all."""

    def parts(self, scope):
        return [("a", 5), ("b", 2)] if scope is None else [("c", scope - 1)] if scope > 1 else []

    def covers(self, wide, narrow):
        return wide is None or wide >= narrow


def of(kind, effects):
    return [e for e in effects if isinstance(e, kind)]


def values(effects):
    return [e.value for e in of(Deliver, effects)]


QUERY = Record("q", "SELECT 1")


@pytest.fixture
def node():
    return QuerySpreading(Line())


def test_a_submitted_query_goes_to_the_whole_table(node):
    effects = node.step(0, Call(Submit("q", "SELECT 1")))
    assert values(effects) == [Learned(QUERY, 0)]
    sends = of(Send, effects)
    assert [(s.to, s.message.scope, s.message.hops) for s in sends] == [("a", 5, 1), ("b", 2, 1)]
    assert sends[0].message.table_hash == node.table.hash


def test_a_receiver_looks_after_its_scope_once(node):
    node.table.merge(QUERY)  # gossip was faster: the scope is looked after all the same
    message = Spread(QUERY, 5, 1, node.table.hash)
    effects = node.step(0, Receive("x", message))
    assert [(s.to, s.message.scope, s.message.hops) for s in of(Send, effects)] == [("c", 4, 2)]
    assert node.redundant == 1
    assert of(Send, node.step(0, Receive("x", message))) == []
    narrower = Spread(QUERY, 3, 1, node.table.hash)
    assert of(Send, node.step(0, Receive("y", narrower))) == []
    wider = Spread(QUERY, 9, 1, node.table.hash)
    assert len(of(Send, node.step(0, Receive("y", wider)))) == 1


def test_a_sender_that_knows_other_queries_is_noticed(node):
    effects = node.step(0, Receive("x", Spread(QUERY, 1, 1, 12345)))
    assert Differs("x") in values(effects)


def test_a_drop_spreads_as_a_tombstone(node):
    node.step(0, Call(Submit("q", "SELECT 1")))
    effects = node.step(0, Call(Drop("q")))
    assert [s.message.record for s in of(Send, effects)] == [Record("q", "", True)] * 2
    assert node.table.standing == []
    late = node.step(0, Receive("x", Spread(QUERY, 5, 1, 0)))
    assert node.table.standing == []
    assert of(Persist, late) == []


def test_an_id_is_used_once_for_ever(node):
    node.step(0, Call(Submit("q", "SELECT 1")))
    again = node.step(0, Call(Submit("q", "SELECT 2")))
    assert values(again) == [Refused("q", "there is or was a query of this id")]
    node.step(0, Call(Drop("q")))
    assert isinstance(values(node.step(0, Call(Submit("q", "SELECT 2"))))[0], Refused)


def test_what_is_not_known_can_not_be_dropped(node):
    assert values(node.step(0, Call(Drop("q")))) == [Refused("q", "this node knows no such query")]


def test_what_gossip_brings_is_not_spread(node):
    effects = node.step(0, Call(Learn((QUERY,))))
    assert values(effects) == [Learned(QUERY, None)]
    assert of(Send, effects) == []


def test_the_table_survives_a_restart(node):
    effects = node.step(0, Call(Submit("q", "SELECT 1"))) + node.step(0, Call(Drop("q")))
    disk = {e.key: e.value for e in of(Persist, effects)}
    again = QuerySpreading(Line())
    again.step(0, Init("me", 1, disk))
    assert again.table.get("q") == Record("q", "", True)


def test_an_unknown_request_is_an_error(node):
    with pytest.raises(TypeError, match="can't 'dance'"):
        node.step(0, Call("dance"))
