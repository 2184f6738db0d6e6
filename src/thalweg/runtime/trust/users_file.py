"""The file of users: JSON, read again when it has changed: a withdrawn token ends at once."""

from __future__ import annotations

import datetime as dt
import os
import threading
from pathlib import Path

import msgspec

from thalweg.runtime.trust.errors import TrustError
from thalweg.runtime.trust.users import User, Users

_decode = msgspec.json.Decoder(Users).decode


class UsersFile:
    """Of any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._users = Users()

    def load(self) -> Users:
        """As it is now. A file that can't be read is an error, never a file without users."""
        with self._lock:
            try:
                status = self.path.stat()
                stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
                if stamp != self._stamp:
                    self._users = _decode(self.path.read_bytes())
                    self._stamp = stamp
            except FileNotFoundError as error:
                raise TrustError(f"there are no users: {self.path} is missing") from error
            except (msgspec.DecodeError, OSError) as error:
                raise TrustError(f"{self.path}: {error}") from error
            return self._users

    def save(self, users: Users) -> None:
        """All or nothing, for its owner's eyes."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_name(self.path.name + ".new")
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(users), indent=2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)

    def authenticate(self, token: str | None, now: dt.datetime | None = None) -> User:
        return self.load().authenticate(token, now or dt.datetime.now(dt.UTC))
