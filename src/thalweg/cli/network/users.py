"""thalweg network user: who may do what."""

from __future__ import annotations

import datetime as dt
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.client import AsJson
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.output import emit, emit_json, emit_lines, emit_table, note

if TYPE_CHECKING:
    from thalweg.runtime.trust import User, Users, UsersFile

user = typer.Typer(name="user", help="Users, their tokens, roles and limits.", no_args_is_help=True)

DEFAULT_FILE = Path("thalweg-users.json")
File = Annotated[
    Path, typer.Option("--users", envvar="THALWEG_USERS", help="The file that nodes are told.")
]
Name = Annotated[str, typer.Argument(help="Of the user.")]
Expires = Annotated[
    str | None, typer.Option(help="When the token ends: 90d, 12h, 30m, or an ISO date and time.")
]
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


class RoleName(StrEnum):
    read = "read"
    submit = "submit"
    operate = "operate"


@user.command()
def add(
    name: Name,
    role: Annotated[
        RoleName, typer.Option(help="read; submit: and change what is their own; operate: all.")
    ] = RoleName.submit,
    expires: Expires = None,
    queries: Annotated[
        int | None, typer.Option(min=0, help="Standing queries at a node, at most.")
    ] = None,
    rows_per_s: Annotated[
        float | None, typer.Option(min=0, help="Rows pushed to a node, at most.")
    ] = None,
    state_bytes: Annotated[
        int | None,
        typer.Option(min=0, help="State of their queries at a node, from which no more are taken."),
    ] = None,
    users: File = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Add a user, and print the token: it is shown once, and kept nowhere."""
    from thalweg.runtime.trust import Limits, Role, User

    with reporting(), _changing(users) as (file, known):
        if known.user(name) is not None:
            raise CommandFailed(
                f"there is a user {name} already: `thalweg network user token {name}` makes "
                "another token, `user remove` takes all away",
                BAD_INPUT,
            )
        limits = Limits(queries, rows_per_s, state_bytes)
        made = known.with_user(User(name, Role(role.value), (), limits))
        _give_token(file, made, name, expires, as_json)


@user.command()
def token(
    name: Name,
    expires: Expires = None,
    only: Annotated[
        bool, typer.Option("--only", help="Withdraw the user's other tokens, at once.")
    ] = False,
    users: File = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Make one more token for a user."""
    with reporting(), _changing(users) as (file, known):
        _give_token(file, known.without_tokens(name) if only else known, name, expires, as_json)


@user.command("list")
def list_(users: File = DEFAULT_FILE, as_json: AsJson = False) -> None:
    """List users with their roles, limits and tokens."""
    with reporting(), _changing(users) as (_, known):
        if as_json:
            emit_lines([_told(u) for u in known.users])
            return
        columns = [
            ("USER", "left"),
            ("ROLE", "left"),
            ("QUERIES", "right"),
            ("ROWS/S", "right"),
            ("STATE", "right"),
            ("TOKENS", "left"),
        ]
        emit_table(columns, map(_row, known.users), empty="no users")


@user.command()
def remove(name: Name, users: File = DEFAULT_FILE) -> None:
    """Take a user out: its tokens end at once; what it has made stays, and is the operators'."""
    with reporting(), _changing(users) as (file, known):
        file.save(known.without_user(name))
        note(f"[green]✓[/] {name} is out")


@contextmanager
def _changing(path: Path) -> Iterator[tuple[UsersFile, Users]]:
    """One command at a time; mistakes become messages."""
    import fcntl

    from thalweg.runtime.trust import TrustError, Users, UsersFile

    file = UsersFile(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(path.name + ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield file, file.load() if path.exists() else Users()
    except (TrustError, ValueError, OSError) as error:
        raise CommandFailed(str(error), BAD_INPUT) from None


def _give_token(
    file: UsersFile, known: Users, name: str, expires: str | None, as_json: bool
) -> None:
    now = dt.datetime.now(dt.UTC)
    ends = _moment(expires, now) if expires is not None else None
    made, token = known.without_expired(now).with_token(name, secrets.token_bytes(32), ends)
    file.save(made)
    until = f" until {ends.isoformat(' ', 'seconds')}" if ends is not None else ""
    if as_json:
        emit_json({"user": name, "token": token, "expires": ends and ends.isoformat()})
    else:
        emit(token)
    note(
        f"good{until}, for all nodes with {file.path}; use it as THALWEG_TOKEN. "
        "It is not shown again."
    )


def _moment(text: str, now: dt.datetime) -> dt.datetime:
    found = re.fullmatch(r"(\d+)([dhms])", text)
    try:
        if found is not None:
            moment = now + dt.timedelta(**{_UNITS[found[2]]: int(found[1])})
        else:
            moment = dt.datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise CommandFailed(
            f"--expires is 90d, 12h, 30m or an ISO date and time, not {text}", BAD_INPUT
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    if moment <= now:
        raise CommandFailed(f"--expires {text} is over already", BAD_INPUT)
    return moment


def _row(user: User) -> tuple[object, ...]:
    limits = user.limits
    return (
        user.name,
        user.role.value,
        "" if limits.queries is None else str(limits.queries),
        "" if limits.rows_per_s is None else f"{limits.rows_per_s:g}",
        "" if limits.state_bytes is None else f"{limits.state_bytes:,}",
        ", ".join(_until(t.expires) for t in user.tokens) or "none",
    )


def _told(user: User) -> dict[str, object]:
    limits = user.limits
    return {
        "user": user.name,
        "role": user.role.value,
        "queries": limits.queries,
        "rows_per_s": limits.rows_per_s,
        "state_bytes": limits.state_bytes,
        "tokens": [t.expires and t.expires.isoformat() for t in user.tokens],
    }


def _until(expires: dt.datetime | None) -> str:
    return "for good" if expires is None else f"until {expires.isoformat(' ', 'minutes')}"
