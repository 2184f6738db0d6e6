"""A service with users in this process, behind a real socket."""

from __future__ import annotations

import datetime as dt
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from thalweg.api.access import Access
from thalweg.api.server import Server, listen_on
from thalweg.cql import compile_script
from thalweg.engine.site import IN_PROCESS, open_site
from thalweg.engine.site.settings import SiteSettings
from thalweg.runtime.trust import Limits, Role, User, Users, UsersFile


class Known:
    """A users file, and the tokens that were handed out."""

    def __init__(self, path: Path) -> None:
        self.file = UsersFile(path)
        self.tokens: dict[str, str] = {}
        self._users = Users()
        self.file.save(self._users)

    def add(
        self,
        name: str,
        role: Role = Role.SUBMIT,
        limits: Limits | None = None,
        expires: dt.datetime | None = None,
    ) -> str:
        users = self._users.with_user(User(name, role, (), limits or Limits()))
        self._users, self.tokens[name] = users.with_token(name, secrets.token_bytes(32), expires)
        self.file.save(self._users)
        return self.tokens[name]

    def remove(self, name: str) -> None:
        self._users = self._users.without_user(name)
        self.file.save(self._users)

    def headers(self, name: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.tokens[name]}"}


Ask = Callable[..., httpx.Response]


@contextmanager
def serving(folder: Path, users: UsersFile) -> Iterator[str]:
    """The URL of a service that asks for tokens."""
    listener = listen_on("127.0.0.1", 0)
    settings = SiteSettings(durable=False, tick_interval_s=0.01)
    site = open_site(folder, compile_script, master=IN_PROCESS, settings=settings)
    ready = threading.Event()
    server = Server(site, ready.set, access=Access(users))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        assert ready.wait(20)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(15)
        site.close()
