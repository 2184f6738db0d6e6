"""Addresses of live nodes."""

import pytest

from thalweg.runtime.transport.addresses import (
    BadAddress,
    address_of,
    host_and_port,
    is_loopback,
)


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("127.0.0.1:7600", ("127.0.0.1", 7600)),
        ("node-1.example:1", ("node-1.example", 1)),
        ("[::1]:65535", ("::1", 65535)),
    ],
)
def test_an_address_is_a_host_and_a_port(address, parts):
    assert host_and_port(address) == parts
    assert address_of(*parts) == address


@pytest.mark.parametrize("text", ["", "n1", ":1", "a:", "a:b", "a:65536", "a:-1", "a:١"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(BadAddress, match="write host:port"):
        host_and_port(text)


def test_an_ipv6_host_needs_brackets():
    with pytest.raises(BadAddress, match="brackets"):
        host_and_port("::1:7600")


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)]
    + [("0.0.0.0", False), ("10.0.0.1", False), ("example", False), ("::", False)],
)
def test_loopback_is_known(host, expected):
    assert is_loopback(host) is expected
