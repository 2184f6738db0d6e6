"""thalweg shell on a terminal: completion with Tab, history, colours."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

from tests.api.conftest import LiveService

GREEN, CYAN = "\x1b[1;32m", "\x1b[36m"
PATIENCE_S = 60


class Terminal:
    """A shell in a terminal of its own, typed at key by key."""

    def __init__(self, url: str, state: Path) -> None:
        keyboard, screen = pty.openpty()
        environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
        environment |= {"TERM": "xterm", "XDG_STATE_HOME": str(state), "THALWEG_URL": url}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "thalweg", "shell"],
            stdin=screen,
            stdout=screen,
            stderr=screen,
            env=environment,
            close_fds=True,
        )
        os.close(screen)
        self._keyboard, self._seen = keyboard, ""

    def types(self, keys: str) -> None:
        os.write(self._keyboard, keys.encode())

    def shows(self, pattern: str) -> str:
        """Wait for it; gives what was shown up to there since the last time."""
        until = time.monotonic() + PATIENCE_S
        while (found := re.search(pattern, self._seen)) is None:
            assert time.monotonic() < until, self._seen
            if select.select([self._keyboard], [], [], 0.2)[0]:
                self._seen += os.read(self._keyboard, 65536).decode(errors="replace")
        shown, self._seen = self._seen[: found.end()], self._seen[found.end() :]
        return shown

    def leaves(self) -> None:
        self.types("\\q\n")
        assert self._process.wait(PATIENCE_S) == 0
        os.close(self._keyboard)


def test_tab_completes_rows_have_colours_and_the_history_is_kept(
    service: LiveService, tmp_path: Path
) -> None:
    service.site.execute(
        "CREATE STREAM Reading (sensor VARCHAR) TIMESTAMP BY ts;"
        "CREATE QUERY seen AS SELECT sensor FROM Reading [Range 60]"
    )
    service.http.post("/streams/Reading/tuples", json=[{"ts": 1, "sensor": "a"}, {"ts": 2}])
    service.site.settle()
    first = Terminal(service.url, tmp_path)
    first.shows("thalweg> ")
    first.types("\\res\tsee\t\n")
    shown = first.shows("thalweg> ")
    assert "\\results seen" in shown
    assert f"{GREEN}+  " in shown
    assert f"{CYAN}sensor=" in shown
    first.types("SELECT sen\tFROM see\t;\n")
    assert "SELECT sensor FROM seen" in first.shows("thalweg> ")
    first.leaves()

    again = Terminal(service.url, tmp_path)
    again.shows("thalweg> ")
    again.types("\x1b[A\x1b[A")  # up, twice: the last was \q
    assert "SELECT sensor FROM seen" in again.shows(r"seen ?;")
    again.types("\n")
    assert "as of 1" in again.shows("as of 1")
    again.leaves()
