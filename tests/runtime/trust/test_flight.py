"""Certificates of nodes also serve Arrow Flight, for both sides of a connection."""

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from thalweg.runtime.trust import Credentials, issue, make_authority

ROWS = pa.table({"n": [1, 2, 3]})


class Server(flight.FlightServerBase):
    def do_get(self, context, ticket):
        return flight.RecordBatchStream(ROWS)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    folder = tmp_path_factory.mktemp("authority")
    make_authority(folder, "test")
    for name in ("home", "reader"):
        issue(folder, name, ["127.0.0.1"])
    return folder


@pytest.fixture(scope="module")
def server(authority):
    options = Credentials.of(authority, "home").for_flight_server()
    with Server("grpc+tls://127.0.0.1:0", **options) as found:
        yield f"grpc+tls://127.0.0.1:{found.port}"


def read(location, **options):
    with flight.connect(location, **options) as client:
        return client.do_get(flight.Ticket(b""), flight.FlightCallOptions(timeout=5)).read_all()


def test_a_node_of_the_network_reads(server, authority):
    assert read(server, **Credentials.of(authority, "reader").for_flight_client()) == ROWS


def test_nobody_reads_without_a_certificate(server, authority):
    known = Credentials.of(authority, "reader").for_flight_client()
    with pytest.raises(flight.FlightError):
        read(server, tls_root_certs=known["tls_root_certs"])


def test_a_foreign_node_neither_reads_nor_is_read_from(server, authority, tmp_path):
    make_authority(tmp_path, "test")
    issue(tmp_path, "foreign", ["127.0.0.1"])
    foreign = Credentials.of(tmp_path, "foreign").for_flight_client()
    known = Credentials.of(authority, "reader").for_flight_client()
    with pytest.raises(flight.FlightError):
        read(server, **{**foreign, "tls_root_certs": known["tls_root_certs"]})
    with pytest.raises(flight.FlightError):
        read(server, **foreign)
