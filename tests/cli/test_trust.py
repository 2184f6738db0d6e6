"""Certificates, users, and where services listen, by the commands."""

import json
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from thalweg.cli.main import app
from thalweg.runtime.data.server import DataServer
from thalweg.runtime.transport.addresses import BadAddress
from thalweg.runtime.trust import Credentials, Denied, Role, UsersFile


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_an_authority_is_made_once_and_says_what_to_copy(tmp_path: Path) -> None:
    command = ("network", "certificates", tmp_path, "--node")
    done = run(*command, "paris=paris.example:7600")
    assert done.exit_code == 0
    assert done.stdout.strip() == str(tmp_path / "paris.crt")
    assert "copy authority.crt, paris.crt and paris.key" in done.stderr.replace("\n", " ")
    authority = (tmp_path / "authority.crt").read_bytes()
    assert run(*command, "lyon=10.0.0.2", "--node", "lyon=lyon.example").exit_code == 0
    assert (tmp_path / "authority.crt").read_bytes() == authority
    Credentials.of(tmp_path, "lyon").check()
    Credentials.of(tmp_path, "lyon").check_names("lyon", "lyon.example:1234")
    for wrong in ("paris", "paris=", "au/x=h", "p=a:b:c"):
        assert run(*command, wrong).exit_code == 2


def test_users_come_get_tokens_and_go(tmp_path: Path) -> None:
    file = tmp_path / "users.json"
    at = ("--users", file)
    added = run("network", "user", "add", "anna", "--role", "submit", "--queries", 3, *at)
    assert added.exit_code == 0
    first = added.stdout.strip()
    users = UsersFile(file)
    assert (users.authenticate(first).role, users.authenticate(first).limits.queries) == (
        Role.SUBMIT,
        3,
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert first not in file.read_text()
    assert run("network", "user", "add", "anna", *at).exit_code == 2
    more = run("network", "user", "token", "anna", "--expires", "90d", "--json", *at)
    second = json.loads(more.stdout)["token"]
    assert users.authenticate(second).name == users.authenticate(first).name == "anna"
    third = run("network", "user", "token", "anna", "--only", *at).stdout.strip()
    with pytest.raises(Denied):
        users.authenticate(first)
    rows = run("network", "user", "list", "--json", *at).stdout.splitlines()
    assert [json.loads(r)["user"] for r in rows] == ["anna"]
    assert "anna" in run("network", "user", "list", *at).stdout
    assert run("network", "user", "remove", "anna", *at).exit_code == 0
    with pytest.raises(Denied):
        users.authenticate(third)
    assert run("network", "user", "remove", "anna", *at).exit_code == 2


@pytest.mark.parametrize("expires", ["2001-01-01", "soon", "0d", "99999999999d"])
def test_a_token_ends_in_the_future(tmp_path: Path, expires: str) -> None:
    done = run("network", "user", "add", "a", "--expires", expires, "--users", tmp_path / "u")
    assert done.exit_code == 2
    assert not (tmp_path / "u").exists()


def told(result: Result) -> str:
    return " ".join(result.stderr.split())


def test_nothing_listens_beyond_loopback_without_certificates_and_users(tmp_path: Path) -> None:
    users, certificates = tmp_path / "u", tmp_path / "c"
    run("network", "user", "add", "anna", "--users", users)
    run("network", "certificates", certificates, "--node", "n=192.0.2.1")
    node = ("node", "--name", "n", "--data-dir", tmp_path / "n", "--master", "in-process")
    for more in ((), ("--users", users), ("--certificates", certificates)):
        refused = run(*node, "--listen", "192.0.2.1", *more)
        assert refused.exit_code == 2
        assert "--certificates and --users" in told(refused)
    assert "--certificates and --users" in told(run("dev", "--host", "0.0.0.0"))
    assert "--address" in told(run(*node, "--listen", "0.0.0.0"))
    with pytest.raises(BadAddress, match="certificates only"):
        DataServer("0.0.0.0:0")


def test_a_nodes_files_are_looked_at_before_it_starts(tmp_path: Path) -> None:
    node = ("node", "--name", "n", "--data-dir", tmp_path / "n", "--master", "in-process")
    assert "user add" in told(run(*node, "--users", tmp_path / "nobody"))
    assert "is missing" in told(run(*node, "--certificates", tmp_path))
    run("network", "certificates", tmp_path, "--node", "n=192.0.2.1")
    refused = run(*node, "--certificates", tmp_path)
    assert refused.exit_code == 2
    assert "is for n.thalweg.internal, thalweg://192.0.2.1, and not for n" in told(refused)
