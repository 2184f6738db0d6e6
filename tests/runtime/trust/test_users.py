"""Tokens, roles and limits of users."""

import datetime as dt
import hmac
import stat

import msgspec
import pytest

from thalweg.runtime.trust import Denied, Limits, Role, TrustError, User, Users, UsersFile

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
SECRETS = [bytes([i]) * 32 for i in range(9)]


@pytest.fixture
def users():
    people = (User("anna", Role.SUBMIT, limits=Limits(queries=2)), User("ben", Role.READ))
    return Users((*people, User("olga", Role.OPERATE)))


def test_a_token_tells_who_it_is(users):
    users, token = users.with_token("anna", SECRETS[0], None)
    assert users.authenticate(token, NOW).name == "anna"
    assert token not in msgspec.json.encode(users).decode()


@pytest.mark.parametrize(
    "token",
    [
        "nonsense",
        "thalweg.anna.",
        "thalweg.anna." + "00" * 31,
        "thalweg.nobody." + "00" * 32,
        "thalweg.ben." + "00" * 32,  # anna's secret
        "Thalweg.anna." + "00" * 32,
        "thalweg.anna." + "00" * 32 + " ",
        "thalweg.anna.\ud800",
        "." * 100,
    ],
)
def test_a_wrong_token_is_nobodys(users, token):
    users, _ = users.with_token("anna", SECRETS[0], None)
    with pytest.raises(Denied, match="not known") as denied:
        users.authenticate(token, NOW)
    assert not denied.value.is_known


@pytest.mark.parametrize("token", [None, ""])
def test_no_token_is_told(users, token):
    with pytest.raises(Denied, match="a token is needed"):
        users.authenticate(token, NOW)


def test_a_token_ends_at_its_time_and_another_may_go_on(users):
    users, first = users.with_token("anna", SECRETS[0], NOW + HOUR)
    users, second = users.with_token("anna", SECRETS[1], None)
    assert users.authenticate(first, NOW).name == "anna"
    with pytest.raises(Denied, match=r"expired at 2030-01-01 01:00:00"):
        users.authenticate(first, NOW + HOUR)
    assert users.authenticate(second, NOW + HOUR).name == "anna"
    assert len(users.without_expired(NOW + HOUR).user("anna").tokens) == 1


def test_a_withdrawn_token_ends(users):
    users, first = users.with_token("anna", SECRETS[0], None)
    users, second = users.with_token("anna", SECRETS[1], None)
    users = users.without_tokens("anna", except_the_last=1)
    with pytest.raises(Denied):
        users.authenticate(first, NOW)
    assert users.authenticate(second, NOW).name == "anna"
    with pytest.raises(Denied):
        users.without_tokens("anna").authenticate(second, NOW)
    with pytest.raises(Denied):
        users.without_user("anna").authenticate(second, NOW)


def test_every_hash_is_compared_in_constant_time(users, monkeypatch):
    """Also where no such user is there: neither time nor the count tells."""
    compared = []
    real = hmac.compare_digest

    def counted(one, other):
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    users, _ = users.with_token("anna", SECRETS[0], None)
    for token in ("thalweg.anna.xx", "thalweg.nobody.xx", "thalweg.ben.xx"):
        compared.clear()
        with pytest.raises(Denied):
            users.authenticate(token, NOW)
        assert len(compared) == 1


def test_a_secret_that_could_be_guessed_is_refused(users):
    with pytest.raises(ValueError, match="guessed"):
        users.with_token("anna", b"short", None)


def test_roles_include_those_below(users):
    anna, ben, olga = (users.user(n) for n in ("anna", "ben", "olga"))
    for user, role in ((ben, Role.READ), (anna, Role.SUBMIT), (olga, Role.OPERATE)):
        user.require(role)
        user.require(Role.READ)
    with pytest.raises(Denied, match="ben has the role read, and this needs submit") as denied:
        ben.require(Role.SUBMIT)
    assert denied.value.is_known


def test_what_is_anothers_is_changed_by_operators_only(users):
    anna, ben, olga = (users.user(n) for n in ("anna", "ben", "olga"))
    anna.require_own("anna", "query hot")
    olga.require_own("anna", "query hot")
    with pytest.raises(Denied, match="query hot is olga's: anna needs the role operate"):
        anna.require_own("olga", "query hot")
    with pytest.raises(Denied, match="query hot is nobody's"):
        anna.require_own(None, "query hot")
    with pytest.raises(Denied, match="needs submit"):
        ben.require_own("ben", "query hot")


def test_limits_say_what_is_short(users):
    anna, olga = users.user("anna"), users.user("olga")
    anna.require_room(1)
    olga.require_room(10_000, 10**12)
    with pytest.raises(Denied, match="may have 2 queries at once, and has 2"):
        anna.require_room(2)
    thrifty = User("eve", Role.SUBMIT, limits=Limits(state_bytes=100))
    thrifty.require_room(50, 99)
    with pytest.raises(Denied, match="may keep 100 bytes of state, and keeps 100"):
        thrifty.require_room(0, 100)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"users": [{"name": "a b", "role": "read"}]}', "1 to 64 letters"),
        ('{"users": [{"name": "a", "role": "boss"}]}', "Invalid enum value 'boss'"),
        ('{"users": [{"name": "a", "role": "read", "limit": {}}]}', "unknown field `limit`"),
        ('{"users": [{"name": "a", "role": "read", "limits": {"queries": -1}}]}', "from 0 on"),
        ('{"users": [{"name": "a", "role": "read", "tokens": [{"sha256": "x"}]}]}', "64 hex"),
        ('{"users": [{"name": "a", "role": "read"}, {"name": "a", "role": "read"}]}', "twice"),
        ("nonsense", "malformed"),
        ("", "truncated"),
    ],
)
def test_a_bad_file_is_an_error_and_lets_nobody_in(tmp_path, content, why):
    file = tmp_path / "users.json"
    file.write_text(content)
    with pytest.raises(TrustError, match=why) as error:
        UsersFile(file).authenticate("thalweg.a.x")
    assert str(file) in str(error.value)


def test_a_time_without_a_zone_is_refused(tmp_path):
    file = tmp_path / "users.json"
    token = f'{{"sha256": "{"0" * 64}", "expires": "2030-01-01T00:00:00"}}'
    file.write_text(f'{{"users": [{{"name": "a", "role": "read", "tokens": [{token}]}}]}}')
    with pytest.raises(TrustError, match="time zone"):
        UsersFile(file).load()


def test_a_missing_file_lets_nobody_in(tmp_path):
    with pytest.raises(TrustError, match="there are no users"):
        UsersFile(tmp_path / "users.json").authenticate("x")


def test_the_file_is_read_again_when_it_has_changed(users, tmp_path):
    file = UsersFile(tmp_path / "folder" / "users.json")
    users, token = users.with_token("anna", SECRETS[0], NOW + HOUR)
    file.save(users)
    assert file.load() == users
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    reader = UsersFile(file.path)
    assert reader.authenticate(token, NOW).name == "anna"
    file.save(users.without_tokens("anna"))
    with pytest.raises(Denied):
        reader.authenticate(token, NOW)


def test_an_unknown_user_is_named_with_those_that_are_known(users):
    with pytest.raises(TrustError, match="no user 'zoe'; there is anna, ben, olga"):
        users.with_token("zoe", SECRETS[0], None)
