"""A node's own certificate and key, and the authority that it trusts."""

from __future__ import annotations

import datetime as dt
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509

from thalweg.runtime.transport.tls import Tls, host_name, is_named
from thalweg.runtime.trust.errors import TrustError


@dataclass(frozen=True, slots=True)
class Credentials:
    """Files in PEM form."""

    authority: Path
    certificate: Path
    key: Path

    @classmethod
    def of(cls, folder: Path, node: str) -> Credentials:
        """As `issue` left them."""
        return cls(folder / "authority.crt", folder / f"{node}.crt", folder / f"{node}.key")

    def check(self, now: dt.datetime | None = None) -> None:
        """Say at the start what would otherwise show as a failed handshake."""
        now = now or dt.datetime.now(dt.UTC)
        authority, own = _loaded(self.authority), _loaded(self.certificate)
        for path, certificate in ((self.authority, authority), (self.certificate, own)):
            if certificate.not_valid_after_utc <= now:
                expired = certificate.not_valid_after_utc.isoformat(" ", "minutes")
                raise TrustError(f"{path} expired at {expired}: issue a new one")
        try:
            own.verify_directly_issued_by(authority)
        except Exception as error:
            raise TrustError(
                f"{self.certificate} was not issued by {self.authority}: use the files of one "
                f"authority"
            ) from error
        self.tls()

    def check_names(self, node: str, address: str) -> None:
        """That the certificate is good for this node at this address."""
        found = _loaded(self.certificate).extensions
        names = found.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = names.get_values_for_type(x509.DNSName)
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
        if not hosts or hosts[0] != host_name(node) or not is_named(address, uris):
            told = ", ".join([*hosts[:1], *uris])
            raise TrustError(
                f"{self.certificate} is for {told}, and not for {node} at {address}: issue one "
                f"with `thalweg network certificates FOLDER --node {node}={address}`"
            )

    def https(self) -> ssl.SSLContext:
        """For a service: users show tokens, nodes their certificates; one of another authority is
        refused."""
        context = self.tls().server
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def tls(self) -> Tls:
        """For both sides of a connection. Only this authority counts; both show who they are."""
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for context in (server, client):
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.verify_mode = ssl.CERT_REQUIRED
            try:
                context.load_verify_locations(cafile=self.authority)
                context.load_cert_chain(self.certificate, self.key)
            except FileNotFoundError as error:
                raise TrustError(f"{self._missing()} is missing") from error
            except ssl.SSLError as error:
                raise TrustError(
                    f"{self.certificate} and {self.key} don't belong together, or {self.authority} "
                    f"is no certificate: {error.reason or error}"
                ) from error
        return Tls(server, client)

    def for_flight_server(self) -> dict[str, Any]:
        """Options of an Arrow Flight server that asks its clients for certificates."""
        authority, certificate, key = self._pem()
        return {
            "tls_certificates": [(certificate, key)],
            "verify_client": True,
            "root_certificates": authority,
        }

    def for_flight_client(self, node: str | None = None) -> dict[str, Any]:
        """Options of a connection, which is good for this node alone, wherever it is."""
        authority, certificate, key = self._pem()
        found: dict[str, Any] = {} if node is None else {"override_hostname": host_name(node)}
        return {
            **found,
            "tls_root_certs": authority,
            "cert_chain": certificate,
            "private_key": key,
        }

    def _pem(self) -> tuple[bytes, bytes, bytes]:
        try:
            authority, certificate = self.authority.read_bytes(), self.certificate.read_bytes()
            return authority, certificate, self.key.read_bytes()
        except FileNotFoundError as error:
            raise TrustError(f"{error.filename} is missing") from error

    def _missing(self) -> str:
        files = (self.authority, self.certificate, self.key)
        return ", ".join(str(f) for f in files if not f.exists()) or "a file"


def _loaded(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except FileNotFoundError as error:
        raise TrustError(f"{path} is missing") from error
    except ValueError as error:
        raise TrustError(f"{path} is no certificate: {error}") from error
