"""A live node's streams, as the tree protocol sees them."""

from thalweg.overlay.protocol import Call
from thalweg.overlay.trees.carried import LEAST, Came, Carried, Unwant, Want
from thalweg.overlay.trees.stream import Tree

S = Tree("home:1", "S")


def call(streams: Carried, request: object) -> None:
    streams.step(0, Call(request))


def test_a_reader_demands_the_rate_at_which_rows_come() -> None:
    streams = Carried()
    call(streams, Want(S))
    assert (streams.classes(S), streams.reads(S)) == ((LEAST,), LEAST)
    call(streams, Came(S, 12.5))
    assert (streams.classes(S), streams.reads(S)) == ((12_500,), 12_500)
    call(streams, Unwant(S))
    assert (streams.classes(S), streams.reads(S)) == ((), None)


def test_a_rate_that_has_changed_by_little_is_not_told() -> None:
    streams = Carried()
    call(streams, Want(S))
    for rate, told in ((100.0, 100_000), (119.0, 100_000), (85.0, 100_000), (120.0, 120_000)):
        call(streams, Came(S, rate))
        assert streams.reads(S) == told


def test_a_broker_is_in_the_tree_and_reads_nothing() -> None:
    streams = Carried()
    call(streams, Want(S, (), True))
    call(streams, Came(S, 100.0))
    assert (streams.classes(S), streams.reads(S)) == ((LEAST,), None)
