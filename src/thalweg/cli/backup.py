"""thalweg backup, restore, upgrade: what becomes of a data directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import httpx
import typer

from thalweg.cli.client import DEFAULT_URL, Service, Unreachable, Url
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.output import emit, note

DataDir = Annotated[Path, typer.Option("--data-dir", help="The data directory.")]


def backup(
    to: Annotated[Path, typer.Argument(help="The file to write, such as thalweg.tar.gz.")],
    data_dir: Annotated[
        Path | None, typer.Option(help="Of a data directory whose service is stopped.")
    ] = None,
    url: Url = DEFAULT_URL,
) -> None:
    """Write a data directory to one file, while its service goes on: catalog, state, results."""
    with reporting():
        if to.exists():
            raise CommandFailed(f"{to} exists already: choose another name", BAD_INPUT)
        if data_dir is not None:
            _of_folder(data_dir, to)
        else:
            _of_service(url, to)
        emit(str(to))
        note(f"{to.stat().st_size:,} bytes; `thalweg restore {to} --data-dir NEW` brings it back")


def _of_folder(data_dir: Path, to: Path) -> None:
    from thalweg.engine.shared.state.store import StoreError
    from thalweg.engine.site.backup import back_up_folder
    from thalweg.engine.site.errors import SiteError

    try:
        back_up_folder(data_dir, to)
    except (SiteError, StoreError, OSError) as error:
        raise CommandFailed(str(error)) from None


def _of_service(url: str, to: Path) -> None:
    partial = to.with_name(f".partial-{to.name}")
    try:
        with (
            Service(url) as service,
            service.stream("/backup", timeout_s=None) as answer,
            partial.open("wb") as out,
        ):
            for block in answer.iter_bytes():
                out.write(block)
        partial.rename(to)
    except httpx.TransportError as error:
        raise Unreachable(url, str(error) or type(error).__name__) from None
    except OSError as error:
        raise CommandFailed(str(error)) from None
    finally:
        partial.unlink(missing_ok=True)


def restore(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="What `thalweg backup` wrote.")],
    data_dir: DataDir,
) -> None:
    """Make a data directory of a backup, here or elsewhere; `thalweg dev` goes on with it."""
    from thalweg.engine.site.backup import restore as restore_
    from thalweg.engine.site.errors import SiteError

    with reporting():
        try:
            restore_(source, data_dir)
        except (SiteError, OSError) as error:
            raise CommandFailed(str(error)) from None
        emit(str(data_dir))
        note(f"start it with `thalweg dev --data-dir {data_dir}`")


def upgrade(data_dir: DataDir = Path("thalweg-data")) -> None:
    """Bring a data directory of an older version to this version's format; a copy is kept."""
    from thalweg.engine.shared.state.store import StoreError
    from thalweg.engine.shared.state.upgrade import format_of
    from thalweg.engine.shared.state.upgrade import upgrade as upgrade_
    from thalweg.engine.site.errors import SiteError
    from thalweg.engine.site.lock import FolderLock

    with reporting():
        try:
            format_of(data_dir)  # says what is wrong with it before a lock file is made
            lock = FolderLock(data_dir)
            try:
                copy = upgrade_(data_dir)
            finally:
                lock.release()
        except (SiteError, StoreError, OSError) as error:
            raise CommandFailed(str(error)) from None
        if copy is None:
            note(f"{data_dir} has this version's format already")
        else:
            emit(str(data_dir))
            note(f"what it was is kept in {copy}")
