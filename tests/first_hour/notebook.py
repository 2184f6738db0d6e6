"""A notebook: a real Jupyter kernel in a process of its own, and what it shows below each cell."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager

PATIENCE_S = 120
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_EMPTY = {"br", "img", "meta", "link", "input", "hr"}


class CellError(Exception):
    """What a cell raised: the exception's name, and the traceback as the notebook shows it."""

    def __init__(self, name: str, traceback: str) -> None:
        super().__init__(traceback)
        self.name = name


class Balanced(HTMLParser):
    """HTML in which every tag is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


class Notebook:
    def __init__(self) -> None:
        self._kernel = KernelManager(kernel_name="python3")
        self._kernel.start_kernel()
        self._client = self._kernel.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=PATIENCE_S)

    def begin(self, folder: Path) -> None:
        """As after a restart of the kernel, in another folder."""
        self.run("import thalweg\nif thalweg.Thalweg._running: thalweg.Thalweg._running.close()")
        self.run(f"%reset -f\n%cd -q {folder}")

    def run(self, cell: str, *, interrupt_at: str | None = None) -> str:
        """What stands below the cell: HTML where there is some. Raises CellError. The button with
        the square is pressed when `interrupt_at` is printed."""
        below: list[str] = []

        def show(message: dict[str, Any]) -> None:
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                below.append(content["text"])
                if interrupt_at is not None and interrupt_at in content["text"]:
                    self._kernel.interrupt_kernel()
            elif kind in ("execute_result", "display_data"):
                below.append(_shown(content["data"]))

        reply = self._client.execute_interactive(cell, output_hook=show, timeout=PATIENCE_S)
        if reply["content"]["status"] == "error":
            traceback = "\n".join(reply["content"]["traceback"])
            raise CellError(reply["content"]["ename"], _COLOURS.sub("", traceback))
        return "".join(below)

    def close(self) -> None:
        self._client.stop_channels()
        self._kernel.shutdown_kernel(now=True)


def _shown(data: dict[str, str]) -> str:
    html = data.get("text/html")
    if html is None:
        return data["text/plain"]
    Balanced(html)
    return html
