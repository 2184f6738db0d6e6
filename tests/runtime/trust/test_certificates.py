"""A private authority, the certificates of nodes, and what they are good for."""

import datetime as dt
import ssl
import stat

import pytest
from cryptography import x509

from thalweg.runtime.trust import Credentials, TrustError, issue, make_authority


@pytest.fixture
def folder(tmp_path):
    make_authority(tmp_path, "auctions")
    return tmp_path


def names(file):
    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(n.value) for n in found]


def test_a_certificate_names_hosts_and_nodes(folder):
    file = issue(folder, "paris", ["127.0.0.1:7600", "paris.example", "[::1]:7600", "10.0.0.1:1"])
    assert names(file) == [
        "paris.thalweg.internal",
        "127.0.0.1",
        "thalweg://127.0.0.1:7600",
        "paris.example",
        "thalweg://paris.example",
        "::1",
        "thalweg://[::1]:7600",
        "10.0.0.1",
        "thalweg://10.0.0.1:1",
    ]


def test_what_was_issued_is_of_use(folder):
    issue(folder, "paris", ["127.0.0.1:7600"])
    credentials = Credentials.of(folder, "paris")
    credentials.check()
    tls = credentials.tls()
    assert tls.server.verify_mode is tls.client.verify_mode is ssl.CERT_REQUIRED
    assert tls.client.check_hostname
    assert tls.server.minimum_version is ssl.TLSVersion.TLSv1_3


def test_keys_are_nobody_elses(folder):
    issue(folder, "paris", ["127.0.0.1:7600"])
    for name in ("authority", "paris"):
        assert stat.S_IMODE((folder / f"{name}.key").stat().st_mode) == 0o600
    assert not list(folder.glob("*.new"))


def test_an_authority_is_not_overwritten(folder):
    with pytest.raises(TrustError, match="there is an authority"):
        make_authority(folder, "auctions")


def test_a_certificate_can_be_replaced(folder):
    first = issue(folder, "paris", ["127.0.0.1:1"]).read_bytes()
    second = issue(folder, "paris", ["127.0.0.1:2"])
    assert second.read_bytes() != first
    Credentials.of(folder, "paris").check()


@pytest.mark.parametrize(
    ("node", "addresses", "why"),
    [
        ("../paris", ["a:1"], "can't name a node's files"),
        ("authority", ["a:1"], "can't name a node's files"),
        ("paris", [], "at which address"),
        ("paris", ["a:b"], "no address"),
        ("paris", ["a/b"], "is no host"),
    ],
)
def test_what_can_t_be_issued_is_refused(folder, node, addresses, why):
    with pytest.raises(TrustError, match=why):
        issue(folder, node, addresses)


def test_a_certificate_that_never_holds_is_refused(folder):
    with pytest.raises(TrustError, match="0 days"):
        issue(folder, "paris", ["a:1"], days=0)


def test_no_certificate_outlives_its_authority(tmp_path):
    make_authority(tmp_path, "short", days=5)
    file = issue(tmp_path, "paris", ["a:1"], days=365)
    authority = x509.load_pem_x509_certificate((tmp_path / "authority.crt").read_bytes())
    own = x509.load_pem_x509_certificate(file.read_bytes())
    assert own.not_valid_after_utc == authority.not_valid_after_utc


def test_where_the_key_is_missing_nothing_is_issued(folder):
    (folder / "authority.key").unlink()
    with pytest.raises(TrustError, match=r"authority\.key is missing"):
        issue(folder, "paris", ["a:1"])


def test_files_that_do_not_fit_are_told_apart(folder, tmp_path):
    issue(folder, "paris", ["127.0.0.1:1"])
    issue(folder, "rome", ["127.0.0.1:2"])
    paris, rome = Credentials.of(folder, "paris"), Credentials.of(folder, "rome")
    with pytest.raises(TrustError, match="don't belong together"):
        Credentials(paris.authority, paris.certificate, rome.key).check()
    with pytest.raises(TrustError, match=r"nobody\.crt is missing"):
        Credentials.of(folder, "nobody").check()
    foreign = tmp_path / "foreign"
    make_authority(foreign, "auctions")
    with pytest.raises(TrustError, match="was not issued by"):
        Credentials(foreign / "authority.crt", paris.certificate, paris.key).check()
    rome.certificate.write_text("nonsense")
    with pytest.raises(TrustError, match="is no certificate"):
        rome.check()


def test_an_expired_certificate_is_told(folder):
    issue(folder, "paris", ["127.0.0.1:1"], days=10)
    later = dt.datetime.now(dt.UTC) + dt.timedelta(days=11)
    with pytest.raises(TrustError, match=r"paris\.crt expired at"):
        Credentials.of(folder, "paris").check(later)
