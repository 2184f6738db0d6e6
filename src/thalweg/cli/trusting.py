"""What a service is to be guarded with, as the options say it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.exits import BAD_INPUT, CommandFailed

if TYPE_CHECKING:
    from thalweg.api.access import Access
    from thalweg.runtime.trust import Credentials

UsersOption = Annotated[
    Path | None,
    typer.Option("--users", help="File of users: every request then needs a token."),
]
CertificatesOption = Annotated[
    Path | None,
    typer.Option(
        "--certificates",
        help="Folder with authority.crt, NAME.crt and NAME.key: all connections use TLS.",
    ),
]


def access_of(users: Path | None) -> Access | None:
    if users is None:
        return None
    from thalweg.api.access import Access
    from thalweg.runtime.trust import TrustError, UsersFile

    file = UsersFile(users)
    try:
        file.load()
    except TrustError as error:
        raise CommandFailed(
            f"{error}; `thalweg network user add NAME --users {users}` makes one", BAD_INPUT
        ) from None
    return Access(file)


def credentials_of(folder: Path | None, name: str) -> Credentials | None:
    """Of the node of this name; checked."""
    if folder is None:
        return None
    from thalweg.runtime.trust import Credentials, TrustError

    found = Credentials.of(folder, name)
    try:
        found.check()
    except TrustError as error:
        raise CommandFailed(
            f"{error} (`thalweg network certificates FOLDER --node {name}=HOST` makes them)",
            BAD_INPUT,
        ) from None
    return found
