"""Users, their tokens, roles and limits. Pure: the file is `users_file.py`'s affair.

A token is `thalweg.NAME.SECRET`, with 256 random bits; only its SHA-256 is kept. (Secrets that
long need no slow hash: there is nothing to guess.) A user can have several, each with an expiry of
its own, so that one can replace another without a gap.
"""

from __future__ import annotations

import datetime as dt
import enum
import hashlib
import hmac
import re
from collections.abc import Iterable

import msgspec

from thalweg.runtime.trust.errors import Denied, TrustError

PREFIX = "thalweg"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HASH = re.compile(r"[0-9a-f]{64}")


class Role(enum.Enum):
    """Each includes those before it."""

    READ = "read"  # see streams, queries, results
    SUBMIT = "submit"  # define, push, submit; change and stop what is one's own
    OPERATE = "operate"  # everything, also what is others'

    def includes(self, other: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(other)


class Limits(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """None: no limit."""

    queries: int | None = None  # standing at once
    rows_per_s: float | None = None  # pushed
    state_bytes: int | None = None  # kept for this user's queries

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not (value >= 0 and value != float("inf")):
                raise ValueError(f"{name} is {value}: a limit is a number from 0 on, or not there")


class Token(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    sha256: str
    expires: dt.datetime | None = None

    def __post_init__(self) -> None:
        if not _HASH.fullmatch(self.sha256):
            raise ValueError("sha256 has 64 hexadecimal digits")
        if self.expires is not None and self.expires.tzinfo is None:
            raise ValueError(f"expires {self.expires}: say in which time zone, as in …T12:00:00Z")


class User(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    name: str
    role: Role
    tokens: tuple[Token, ...] = ()
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"user {self.name!r}: a name has 1 to 64 letters, digits, _ or -")

    def require(self, role: Role) -> None:
        if not self.role.includes(role):
            raise Denied(
                f"{self.name} has the role {self.role.value}, and this needs {role.value}",
                is_known=True,
            )

    def require_own(self, owner: str | None, what: str) -> None:
        """For a change to something that belongs to `owner` (None: to nobody, operators only)."""
        self.require(Role.SUBMIT)
        if self.name != owner and not self.role.includes(Role.OPERATE):
            whose = "nobody's" if owner is None else f"{owner}'s"
            raise Denied(
                f"{what} is {whose}: {self.name} needs the role operate to change it", is_known=True
            )

    def require_room(self, queries: int, state_bytes: int = 0) -> None:
        """For one more query, where so many stand and take so much."""
        limits = self.limits
        if limits.queries is not None and queries >= limits.queries:
            raise Denied(
                f"{self.name} may have {limits.queries} queries at once, and has {queries}; "
                f"stop one, or ask an operator",
                is_known=True,
            )
        if limits.state_bytes is not None and state_bytes >= limits.state_bytes:
            raise Denied(
                f"{self.name} may keep {limits.state_bytes} bytes of state, and keeps "
                f"{state_bytes}; stop a query, or ask an operator",
                is_known=True,
            )


class Users(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of a network; a change gives a new one."""

    users: tuple[User, ...] = ()

    def __post_init__(self) -> None:
        names = [u.name for u in self.users]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(f"user {twice[0]} stands there twice")

    def user(self, name: str) -> User | None:
        return next((u for u in self.users if u.name == name), None)

    def authenticate(self, token: str | None, now: dt.datetime) -> User:
        """Whose token it is; Denied, where it is nobody's."""
        if not token:
            raise Denied("a token is needed", is_known=False)
        name, digest = _name_in(token), _sha256(token)
        user = self.user(name) if name is not None else None
        found = None
        # Every hash is compared in full, also where there is no such user: time tells nothing.
        for kept in (user.tokens if user is not None else ()) or (_NOBODYS,):
            if hmac.compare_digest(kept.sha256, digest):
                found = kept
        if user is None or found is None:
            raise Denied("this token is not known", is_known=False)
        if found.expires is not None and found.expires <= now:
            when = found.expires.isoformat(" ", "seconds")
            raise Denied(f"this token expired at {when}", is_known=False)
        return user

    # --- changes ---

    def with_user(self, user: User) -> Users:
        """New, or in place of the one of this name."""
        return Users((*(u for u in self.users if u.name != user.name), user))

    def without_user(self, name: str) -> Users:
        self._existing(name)
        return Users(tuple(u for u in self.users if u.name != name))

    def with_token(
        self, name: str, secret: bytes, expires: dt.datetime | None
    ) -> tuple[Users, str]:
        """The token is told once, here, and never again. `secret` must be random."""
        if len(secret) < 32:
            raise ValueError("a secret of fewer than 32 random bytes could be guessed")
        user = self._existing(name)
        token = f"{PREFIX}.{name}.{secret.hex()}"
        kept = Token(_sha256(token), expires)
        changed = msgspec.structs.replace(user, tokens=(*user.tokens, kept))
        return self.with_user(changed), token

    def without_tokens(self, name: str, *, except_the_last: int = 0) -> Users:
        """Withdraw a user's tokens, the oldest first."""
        user = self._existing(name)
        kept = user.tokens[max(0, len(user.tokens) - except_the_last) :]
        return self.with_user(msgspec.structs.replace(user, tokens=kept))

    def without_expired(self, now: dt.datetime) -> Users:
        def standing(tokens: Iterable[Token]) -> tuple[Token, ...]:
            return tuple(t for t in tokens if t.expires is None or t.expires > now)

        users = (msgspec.structs.replace(u, tokens=standing(u.tokens)) for u in self.users)
        return Users(tuple(users))

    def _existing(self, name: str) -> User:
        user = self.user(name)
        if user is None:
            known = ", ".join(u.name for u in self.users) or "nobody"
            raise TrustError(f"there is no user {name!r}; there is {known}")
        return user


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _name_in(token: str) -> str | None:
    prefix, _, rest = token.partition(".")
    name, _, secret = rest.partition(".")
    return name if prefix == PREFIX and secret else None


_NOBODYS = Token("0" * 64)
