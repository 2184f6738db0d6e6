"""A private certificate authority for one network, and the certificates of its nodes.

A folder holds `authority.crt` (which every node gets), `authority.key` (which stays where
certificates are made, and nowhere else), and for each node `NAME.crt` and `NAME.key`. Keys are on
the curve P-256. A node's certificate serves for both sides of a connection. It names the node
itself (`NAME.thalweg.internal`), its hosts, as other software checks them, and its addresses:
`thalweg://host:port`, or `thalweg://host` for any port.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import re
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from thalweg.runtime.transport.addresses import BadAddress, host_and_port
from thalweg.runtime.transport.tls import SCHEME, host_name
from thalweg.runtime.trust.errors import TrustError

AUTHORITY = "authority"
AUTHORITY_DAYS, NODE_DAYS = 3650, 365
_NODE = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63}){0,2}")  # as part of a host's name
_EARLY = dt.timedelta(hours=1)  # valid from before now: clocks differ


def make_authority(folder: Path, network: str, *, days: int = AUTHORITY_DAYS) -> Path:
    """A new authority in this folder; gives the file of its certificate."""
    certificate_file, key_file = _files(folder, AUTHORITY)
    if certificate_file.exists() or key_file.exists():
        raise TrustError(
            f"there is an authority in {folder} already, and what it signed would no longer be "
            f"trusted; use it, or choose another folder"
        )
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(f"{network} authority", network)
    certificate = (
        _begun(subject, subject, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(parents=True, exist_ok=True)
    _write(key_file, _pem_of(key), secret=True)
    _write(certificate_file, certificate.public_bytes(serialization.Encoding.PEM))
    return certificate_file


def issue(folder: Path, node: str, addresses: Sequence[str], *, days: int = NODE_DAYS) -> Path:
    """A certificate for a node at these addresses (`host:port`, or `host` for any port), by the
    authority of this folder; a former one is replaced. Gives its file."""
    if node == AUTHORITY or not _NODE.fullmatch(node):
        raise TrustError(f"{node!r} can't name a node's files: use letters, digits, . _ and -")
    if not addresses:
        raise TrustError(f"at which address is {node} reached? write host:port")
    authority, authority_key = _load_authority(folder)
    key = ec.generate_private_key(ec.SECP256R1())
    network = authority.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value
    subject = _name(node, str(network))
    until = authority.not_valid_after_utc
    certificate = (
        _begun(subject, authority.subject, key.public_key(), days, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            ),
            critical=False,
        )
        .add_extension(x509.SubjectAlternativeName(_names_of(node, addresses)), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
            critical=False,
        )
        .sign(authority_key, hashes.SHA256())
    )
    certificate_file, key_file = _files(folder, node)
    _write(key_file, _pem_of(key), secret=True)
    _write(certificate_file, certificate.public_bytes(serialization.Encoding.PEM))
    return certificate_file


def _files(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.crt", folder / f"{name}.key"


def _load_authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    certificate_file, key_file = _files(folder, AUTHORITY)
    try:
        certificate = x509.load_pem_x509_certificate(certificate_file.read_bytes())
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
    except FileNotFoundError as error:
        raise TrustError(
            f"{error.filename} is missing: certificates are made where the authority's key is; "
            f"a new network begins with a new authority"
        ) from error
    except ValueError as error:
        raise TrustError(f"the authority in {folder} can't be read: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or (
        key.public_key().public_numbers() != _numbers(certificate)
    ):
        raise TrustError(f"{key_file} is not the key of {certificate_file}")
    return certificate, key


def _numbers(certificate: x509.Certificate) -> object:
    key = certificate.public_key()
    return key.public_numbers() if isinstance(key, ec.EllipticCurvePublicKey) else None


def _names_of(node: str, addresses: Sequence[str]) -> list[x509.GeneralName]:
    # The node's own name comes first: gRPC takes the first one for who is calling.
    own = x509.DNSName(host_name(node))
    found: dict[tuple[type, str], x509.GeneralName] = {(type(own), own.value): own}
    for address in addresses:
        host, uri = _host_and_uri(address)
        for name in (_host_name(host), x509.UniformResourceIdentifier(uri)):
            found[type(name), str(name.value)] = name
    return list(found.values())


def _host_and_uri(address: str) -> tuple[str, str]:
    host = address.strip("[]")
    if ":" not in address or _is_ip(host):
        if not host or "/" in host:
            raise TrustError(f"{address!r} is no host")
        return host, f"{SCHEME}[{host}]" if ":" in host else f"{SCHEME}{host}"
    try:
        return host_and_port(address)[0], f"{SCHEME}{address}"
    except BadAddress as error:
        raise TrustError(str(error)) from error


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _host_name(host: str) -> x509.GeneralName:
    if _is_ip(host):
        return x509.IPAddress(ipaddress.ip_address(host))
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise TrustError(f"{host!r} is no name of a host: {error}") from error


def _name(common: str, network: str) -> x509.Name:
    try:
        return x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, network),
                x509.NameAttribute(NameOID.COMMON_NAME, common),
            ]
        )
    except ValueError as error:
        raise TrustError(
            f"{common!r} of {network!r} can't stand in a certificate: {error}"
        ) from error


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    days: int,
    until: dt.datetime | None = None,
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    end = now + dt.timedelta(days=days)
    if days < 1:
        raise TrustError(f"a certificate for {days} days would be of no use")
    if until is not None and until <= now:
        raise TrustError("the authority has expired; the network needs a new one")
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(end if until is None else min(end, until))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes, *, secret: bool = False) -> None:
    """All or nothing; a secret is nobody else's from its first byte on."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if secret else 0o644)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    new.replace(path)
