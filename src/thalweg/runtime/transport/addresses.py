"""Addresses of live nodes: `host:port`, with an IPv6 host in brackets."""

from __future__ import annotations

import ipaddress

from thalweg.overlay.protocol import Address


class BadAddress(ValueError):
    """What is wrong with an address, and how it should look."""


def host_and_port(address: Address) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise BadAddress(f"{address!r}: an IPv6 host stands in brackets, as in [::1]:7600")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise BadAddress(f"{address!r} is no address; write host:port, as in 127.0.0.1:7600")
    return host, int(port)


def address_of(host: str, port: int) -> Address:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
