"""A service on loopback, in this process and without Spark."""

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from thalweg.api.server import Server, listen_on
from thalweg.cql import compile_script
from thalweg.engine.site import IN_PROCESS, Site, open_site
from thalweg.engine.site.settings import SiteSettings


class LiveService:
    """A site behind a real socket."""

    def __init__(self, folder: Path, *, patience_s: float = 120, **settings: object) -> None:
        chosen = SiteSettings(**{"durable": False, "tick_interval_s": 0.0, **settings})  # type: ignore[arg-type]
        self.site: Site = open_site(folder, compile_script, master=IN_PROCESS, settings=chosen)
        listener = listen_on("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        ready = threading.Event()
        self._server = Server(self.site, ready.set)
        self._thread = threading.Thread(target=self._server.run, args=([listener],))
        self._thread.start()
        assert ready.wait(10)
        self.http = httpx.Client(base_url=self.url, timeout=patience_s, trust_env=False)

    def close(self) -> None:
        self.http.close()
        self._server.should_exit = True
        self._thread.join(15)
        self.site.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[LiveService]:
    live = LiveService(tmp_path / "data")
    yield live
    live.close()
