"""Messages over loopback sockets: delivered, bounded, refused, dropped, counted."""

import socket
import struct
import time

import msgspec
import pytest
from tests.overlay.echo import Echo, Ping
from tests.runtime.links import Relay
from tests.runtime.waiting import eventually

from thalweg.overlay.protocol import Message
from thalweg.overlay.stack import Stack
from thalweg.runtime.transport import BadAddress, Transport, TransportSettings
from thalweg.runtime.transport.frames import VERSION, Hello, greeting

QUICK = TransportSettings(
    connect_within_s=1.0, backoff_s=0.01, longest_backoff_s=0.1, stale_after_s=1.0
)


class Text(Message, frozen=True):
    text: str


class Letters(Echo):
    name = "letters"
    messages = (Text,)


@pytest.fixture
def opened():
    transports = []

    def open_one(listen="127.0.0.1:0", **options):
        options = {"network": "test", "settings": QUICK, **options}
        transport = Transport(listen, **options)
        transport.mail = []
        transport.start(Stack([Echo(), Letters()]), lambda *message: transport.mail.append(message))
        transports.append(transport)
        return transport

    yield open_one
    for transport in transports:
        transport.close()


def dialled(transport):
    """A plain socket to it."""
    host, port = transport.address.split(":")
    return socket.create_connection((host, int(port)), timeout=5)


def received(connection):
    (length,) = struct.unpack(">I", connection.recv(4))
    return msgspec.msgpack.decode(connection.recv(length))


def hello(node, **changes):
    fields = {"network": "test", "sender": "127.0.0.1:9", "to": node.address, "version": VERSION}
    return greeting(Hello(**{**fields, **changes}))


def test_messages_arrive_in_order_with_sender_and_protocol(opened):
    a, b = opened(), opened()
    for i in range(1_000):
        a.send(b.address, "echo", Ping(i))
    eventually(lambda: len(b.mail) == 1_000)
    assert b.mail == [(a.address, "echo", Ping(i)) for i in range(1_000)]
    b.send(a.address, "letters", Text("thanks"))
    eventually(lambda: a.mail == [(b.address, "letters", Text("thanks"))])
    assert a.counts()["sent"] == b.counts()["received"] == 1_000


def test_messages_to_nobody_are_dropped_in_time(opened):
    a = opened(settings=TransportSettings(stale_after_s=0.2, backoff_s=0.01, longest_backoff_s=0.1))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{free.getsockname()[1]}"
    a.send(nobody, "echo", Ping(1))
    eventually(lambda: a.counts().get("dropped: too old") == 1)
    assert a.counts()["connections that failed"] >= 2


def test_a_peer_that_returns_is_reached_again(opened):
    a, b = opened(), opened()
    a.send(b.address, "echo", Ping(0))
    eventually(lambda: b.mail)
    b.close()

    def reached():
        a.send(b.address, "echo", Ping(1))
        return again.mail

    again = opened(listen=b.address)
    eventually(reached)


def test_a_peer_that_takes_nothing_costs_a_bounded_queue_of_the_newest(opened):
    limits = TransportSettings(
        most_queued=50, most_queued_bytes=1 << 22, most_frame_bytes=1 << 20, stale_after_s=60
    )
    a, b = opened(settings=limits), opened()
    with Relay(b.address) as link:
        a._dial = lambda _: (link.host, link.port)
        a.send(b.address, "letters", Text("first"))
        eventually(lambda: b.mail)
        link.cut()
        for i in range(3_000):  # more than relay and kernel keep
            a.send(b.address, "letters", Text(f"{i:06d}" + "x" * 10_000))
        eventually(lambda: a.counts().get("sent") == 3_001)
        assert a.counts()["dropped: the queue was full"] > 500
        link.heal()
        eventually(lambda: b.mail[-1][2].text.startswith("002999"))
    numbers = [int(m.text[:6]) for _, _, m in b.mail[1:]]
    assert numbers == sorted(numbers)


def test_a_message_that_is_too_large_is_dropped_by_its_sender(opened):
    a, b = opened(settings=TransportSettings(most_frame_bytes=1_000)), opened()
    a.send(b.address, "letters", Text("x" * 2_000))
    a.send(b.address, "letters", Text("small"))
    eventually(lambda: [m.text for _, _, m in b.mail] == ["small"])
    assert a.counts()["too large to send"] == 1


def test_a_message_that_can_t_be_encoded_harms_nobody(opened, caplog):
    a, b = opened(), opened()
    a.send(b.address, "echo", Ping(1 << 70))
    a.send(b.address, "echo", Ping(1 << 71))
    a.send(b.address, "echo", Ping(2))
    eventually(lambda: b.mail == [(a.address, "echo", Ping(2))])
    assert a.counts()["can't be encoded"] == 2


def test_what_is_not_understood_is_counted_logged_once_and_dropped(opened, caplog):
    b = opened()
    with dialled(b) as connection:
        connection.sendall(hello(b))
        assert received(connection) == {"type": "Welcome"}
        for _ in range(5):
            connection.sendall(greeting(Hello("no", "message", "this", 1)))
        content = msgspec.msgpack.encode(("echo", Ping(3)))
        connection.sendall(struct.pack(">I", len(content)) + content)
        eventually(lambda: b.mail == [("127.0.0.1:9", "echo", Ping(3))])
    assert b.counts()["not understood"] == 5
    assert sum("not understood" in r.getMessage() for r in caplog.records) == 1


def test_a_frame_beyond_the_limit_ends_the_connection(opened):
    b = opened(settings=TransportSettings(most_frame_bytes=1_000))
    with dialled(b) as connection:
        connection.sendall(hello(b))
        received(connection)
        connection.sendall(struct.pack(">I", 1_001))
        assert connection.recv(1) == b""
    eventually(lambda: b.counts().get("refused") == 1)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"network": "other"}, "is of the network 'test', not 'other'"),
        ({"version": 99}, "speaks version 1, not 99"),
        ({"to": "127.0.0.1:1"}, "not 127.0.0.1:1"),
        ({"sender": "nonsense"}, "'nonsense' is no address"),
    ],
)
def test_who_is_not_meant_to_come_is_told_why(opened, changes, why):
    b = opened()
    with dialled(b) as connection:
        connection.sendall(hello(b, **changes))
        answer = received(connection)
        assert answer["type"] == "Sorry"
        assert why in answer["why"]
        assert connection.recv(1) == b""


def test_noise_and_silence_are_hung_up_on(opened):
    b = opened(settings=TransportSettings(connect_within_s=0.2))
    for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x03abc", b"", b"\x00"):
        with dialled(b) as connection:
            connection.sendall(noise)
            assert connection.recv(1) == b""
    a = opened()
    a.send(b.address, "echo", Ping(1))
    eventually(lambda: b.mail == [(a.address, "echo", Ping(1))])


def test_a_node_of_another_network_gets_no_messages(opened, caplog):
    a, b = opened(), opened(network="other")
    a.send(b.address, "echo", Ping(1))
    eventually(lambda: a.counts().get("refused"))
    assert b.mail == []
    assert "is of the network 'other', not 'test'" in caplog.text


def test_closing_waits_for_what_was_sent(opened):
    a, b = opened(), opened()
    for i in range(200):
        a.send(b.address, "echo", Ping(i))
    a.close(flush_within_s=5)
    eventually(lambda: len(b.mail) == 200)


def test_beyond_loopback_a_node_listens_with_certificates_only():
    with pytest.raises(BadAddress, match="certificates"):
        Transport("0.0.0.0:0", network="test")


def test_a_taken_port_is_named(opened):
    a = opened()
    with pytest.raises(BadAddress, match="can't be listened to: Address already in use"):
        Transport(a.address, network="test")


def test_idle_connections_end_and_come_again(opened):
    a, b = opened(settings=TransportSettings(idle_after_s=0.1)), opened()
    for i in range(3):
        a.send(b.address, "echo", Ping(i))
        eventually(lambda i=i: len(b.mail) == i + 1)
        eventually(lambda: not a._links)
        time.sleep(0.01)


def test_a_link_that_breaks_is_dialled_anew(opened):
    a, b = opened(), opened()
    with Relay(b.address) as link:
        a._dial = lambda _: (link.host, link.port)
        for i in range(5):
            a.send(b.address, "echo", Ping(i))
            eventually(lambda i=i: b.mail and b.mail[-1][2] == Ping(i))
            link.hang_up()
            eventually(lambda: not a._links or a._links[b.address]._writer is None)
        assert link.connections == 5
