"""TLS between nodes: both sides show a certificate of one authority, and it names the node.

A certificate names nodes by URIs among its alternative names: `thalweg://host:port` is that node,
`thalweg://host` is any node of that host. Its first name is `NAME.thalweg.internal`: so whoever
calls a node by HTTP or Flight checks that it is the node of this name, with TLS's own means.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any

from thalweg.overlay.protocol import Address
from thalweg.runtime.transport.addresses import host_and_port
from thalweg.runtime.transport.frames import Refused

SCHEME = "thalweg://"
_NAMES = ".thalweg.internal"


def host_name(node: str) -> str:
    """By which a node's certificate names the node, wherever it is."""
    return f"{node.lower()}{_NAMES}"


def node_name(host: str) -> str | None:
    """Which node a certificate's first name is."""
    return host.removesuffix(_NAMES) if host.endswith(_NAMES) else None


@dataclass(frozen=True, slots=True)
class Tls:
    """For connections from others, and for those to others."""

    server: ssl.SSLContext
    client: ssl.SSLContext

    def __post_init__(self) -> None:
        for side in (self.server, self.client):
            if side.verify_mode is not ssl.CERT_REQUIRED:
                raise ValueError("both sides must show a certificate: set CERT_REQUIRED")


def check_certificate(connection: Any, address: Address) -> None:
    """That who is at the other end of a TLS connection may be this node."""
    certificate = connection.getpeercert() if connection is not None else None
    names = [v for kind, v in (certificate or {}).get("subjectAltName", ()) if kind == "URI"]
    if not is_named(address, names):
        raise Refused(f"the certificate of {address} names {', '.join(names) or 'no node'}")


def is_named(address: Address, uris: list[str]) -> bool:
    host, _ = host_and_port(address)
    bracketed = f"[{host}]" if ":" in host else host
    return f"{SCHEME}{address}" in uris or f"{SCHEME}{bracketed}" in uris
