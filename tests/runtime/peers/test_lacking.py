"""How readers are told what peers lack."""

import msgspec

from thalweg.overlay.p2p.query import Input, JoinQuery, JoinStep, Leaf
from thalweg.overlay.p2p.results import OpenQuery
from thalweg.runtime.peers.lacking import lacking, lacking_text

LEAVES = (Leaf("X", 5), Leaf("Y", 5))
JOIN = JoinQuery(
    "q",
    "n1",
    LEAVES,
    (JoinStep((Input(0, False, 0, 0), Input(1, False, 1, 0))),),
    ((0, 0),),
)


def instants(instant, stream):
    return f"{instant} of {stream}"


class Asker:
    """Peers, as far as one query's readers look at them."""

    def __init__(self, waiting):
        self._waiting = waiting

    def query(self, query, look):
        return look(OpenQuery(JOIN, pending=None))

    def waiting(self, query):
        return self._waiting


def test_a_stream_that_waits_is_told_with_the_nodes_that_it_waits_for():
    named = {"10.0.0.2:1": "n2", "10.0.0.3:1": "n3"}.__getitem__
    told = lacking([JOIN], Asker({"X#1": ("10.0.0.2:1", "10.0.0.3:1")}), named)
    assert told == {"waits": [{"stream": "X", "nodes": ["n2", "n3"]}]}
    assert (
        lacking_text(told, instants) == "X waits: most of n2, n3, who keep its register, are away"
    )


def test_nothing_is_told_where_nothing_lacks():
    told = lacking([JOIN], Asker({}), str)
    assert told == {}
    assert lacking_text(told, instants) is None


def test_rows_at_once_are_said_to_be_possibly_incomplete():
    told = lacking([msgspec.structs.replace(JOIN, eager=True)], Asker({}), str)
    assert told == {"possibly_incomplete": True}
    assert lacking_text(told, instants) is None  # the query's kind says so, and nothing is wrong


def test_instants_are_told_as_the_stream_writes_them():
    told = {"lost": [{"stream": "X", "node": "n2", "since": 9}]}
    assert lacking_text(told, instants) == "results from 9 of X on lack what n2 had of X"
