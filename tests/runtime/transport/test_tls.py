"""Nodes that show certificates: those of the network talk, all others don't."""

import socket
import ssl

import pytest
from tests.overlay.echo import Echo, Ping
from tests.runtime.links import Relay
from tests.runtime.waiting import eventually

from thalweg.overlay.stack import Stack
from thalweg.runtime.transport import Tls, Transport, TransportSettings
from thalweg.runtime.transport.frames import VERSION, Hello, greeting
from thalweg.runtime.transport.tls import is_named
from thalweg.runtime.trust import Credentials, issue, make_authority

QUICK = TransportSettings(connect_within_s=2.0, backoff_s=0.01, longest_backoff_s=0.05)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    folder = tmp_path_factory.mktemp("authority")
    make_authority(folder, "test")
    return folder


@pytest.fixture
def opened():
    transports = []

    def open_one(listen="127.0.0.1:0", **options):
        transport = Transport(listen, network="test", settings=QUICK, **options)
        transport.mail = []
        transport.start(Stack([Echo()]), lambda *message: transport.mail.append(message))
        transports.append(transport)
        return transport

    yield open_one
    for transport in transports:
        transport.close()


def free_address():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{found.getsockname()[1]}"


def node(opened, folder, name, address=None, named=None, **options):
    """At an address, with a certificate for it (or for what is `named`)."""
    address = address or free_address()
    issue(folder, name, [named or address])
    return opened(address, tls=Credentials.of(folder, name).tls(), **options)


def test_nodes_of_one_authority_talk(opened, authority):
    a, b = node(opened, authority, "a"), node(opened, authority, "b")
    a.send(b.address, "echo", Ping(1))
    b.send(a.address, "echo", Ping(2))
    eventually(lambda: b.mail == [(a.address, "echo", Ping(1))])
    eventually(lambda: a.mail == [(b.address, "echo", Ping(2))])


def test_a_certificate_of_the_host_serves_any_port(opened, authority):
    a, b = node(opened, authority, "a"), node(opened, authority, "b", named="127.0.0.1")
    a.send(b.address, "echo", Ping(1))
    b.send(a.address, "echo", Ping(2))
    eventually(lambda: a.mail and b.mail)


def test_a_foreign_certificate_gets_nowhere(opened, authority, tmp_path):
    make_authority(tmp_path, "test")
    a, foreign = node(opened, authority, "a"), node(opened, tmp_path, "foreign")
    foreign.send(a.address, "echo", Ping(1))
    a.send(foreign.address, "echo", Ping(2))
    eventually(lambda: a.counts().get("refused") and foreign.counts().get("refused"))
    assert a.mail == foreign.mail == []


def test_without_a_certificate_nobody_gets_in(opened, authority):
    a, plain = node(opened, authority, "a"), opened()
    plain.send(a.address, "echo", Ping(1))
    eventually(lambda: plain.counts().get("connections that failed", 0) > 1)
    anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anonymous.load_verify_locations(authority / "authority.crt")
    assert answer_to(anonymous, a) == b""
    issue(authority, "c", ["127.0.0.1:9"])
    assert answer_to(Credentials.of(authority, "c").tls().client, a) != b""  # the same with one
    assert a.mail == []


def answer_to(context, transport):
    """What a Hello from 127.0.0.1:9 brings; nothing, if the connection ends."""
    host, port = transport.address.split(":")
    with socket.create_connection((host, int(port)), timeout=5) as raw:
        try:
            with context.wrap_socket(raw, server_hostname=host) as connection:
                hello = Hello("test", "127.0.0.1:9", transport.address, VERSION)
                connection.sendall(greeting(hello))
                return connection.recv(100)
        except (ssl.SSLError, ConnectionError):
            return b""


def test_a_node_can_t_speak_for_another(opened, authority, caplog):
    """Its certificate is right, but names another address than its Hello."""
    a = node(opened, authority, "a")
    liar = node(opened, authority, "liar", named=free_address())
    liar.send(a.address, "echo", Ping(1))
    eventually(lambda: liar.counts().get("refused"))
    assert a.mail == []
    assert f"the certificate of {liar.address} names thalweg://" in caplog.text


def test_a_node_at_another_s_address_hears_nothing(opened, authority):
    a = node(opened, authority, "a")
    squatter = node(opened, authority, "squatter", named=free_address())
    a.send(squatter.address, "echo", Ping(1))
    eventually(lambda: a.counts().get("refused"))
    assert squatter.mail == []


def test_what_is_recorded_on_the_way_can_t_be_said_again(opened, authority):
    """A replay of all bytes of a connection is no connection."""
    a, b = node(opened, authority, "a"), node(opened, authority, "b")
    recorded = []
    with Relay(b.address) as link:
        read_ahead = link._read_ahead

        async def recording(reader, under_way):
            real = reader.read

            async def read(size):
                chunk = await real(size)
                recorded.append(chunk)
                return chunk

            reader.read = read
            await read_ahead(reader, under_way)

        link._read_ahead = recording
        a._dial = lambda _: (link.host, link.port)
        a.send(b.address, "echo", Ping(1))
        eventually(lambda: b.mail)
    host, port = b.address.split(":")
    with socket.create_connection((host, int(port)), timeout=5) as again:
        again.sendall(b"".join(recorded))
        again.settimeout(0.5)
        try:
            while again.recv(1 << 16):
                pass
        except (TimeoutError, ConnectionError):
            pass
    assert b.mail == [(a.address, "echo", Ping(1))]


def test_contexts_that_don_t_ask_for_certificates_are_refused(authority):
    issue(authority, "a", ["127.0.0.1:1"])
    tls = Credentials.of(authority, "a").tls()
    lax = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with pytest.raises(ValueError, match="CERT_REQUIRED"):
        Tls(lax, tls.client)


@pytest.mark.parametrize(
    ("address", "uris", "expected"),
    [
        ("h:1", ["thalweg://h:1"], True),
        ("h:1", ["thalweg://h"], True),
        ("h:1", ["thalweg://h:2", "thalweg://g"], False),
        ("h:1", ["http://h:1"], False),
        ("h:1", [], False),
        ("[::1]:1", ["thalweg://[::1]:1"], True),
        ("[::1]:1", ["thalweg://[::1]"], True),
    ],
)
def test_certificates_name_nodes(address, uris, expected):
    assert is_named(address, uris) is expected
