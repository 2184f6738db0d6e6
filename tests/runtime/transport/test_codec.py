"""Messages as bytes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.echo import Echo, Ping

from thalweg.overlay.membership import Ack, Membership
from thalweg.overlay.stack import Stack
from thalweg.overlay.view import Word
from thalweg.runtime.transport.codec import BadFrame, Codec

CODEC = Codec(Stack([Echo(), Membership()]))


def test_a_message_comes_back_with_its_protocol():
    ack = Ack(7, (Word("a:1", 2, 0), Word("b:1", 0, 3)))
    assert CODEC.decode(CODEC.encode("membership", ack)) == ("membership", ack)
    assert CODEC.decode(CODEC.encode("echo", Ping(1))) == ("echo", Ping(1))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (("chord", Ping(1)), "a protocol that does not run here: 'chord'"),
        (("echo", Ack(1, ())), "no message of echo"),
        (("echo", {"type": "Ping", "number": "one"}), "no message of echo"),
        (("echo", {"type": "Ping"}), "no message of echo"),
        (("echo", 5), "no message of echo"),
        ({"a": 1}, "no envelope"),
        ((1, 2), "no envelope"),
    ],
)
def test_what_is_no_message_of_this_node_is_refused_in_words(content, why):
    with pytest.raises(BadFrame, match=why):
        CODEC.decode(msgspec.msgpack.encode(content))


@given(st.binary(max_size=200))
def test_no_bytes_do_worse_than_that(content):
    try:
        protocol, _ = CODEC.decode(content)
    except BadFrame:
        return
    assert protocol in ("echo", "membership")


def test_neither_does_deep_nesting():
    with pytest.raises(BadFrame):
        CODEC.decode(b"\x92\xa4echo" + b"\x91" * 100_000 + b"\xc0")
