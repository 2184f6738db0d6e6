"""Python blocks of the pages, run as a notebook runs its cells: in one process, again and again,
with the last expression displayed and a cell interrupted."""

import ast
import contextlib
import io
import os
import re
import signal
import textwrap
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from thalweg import Thalweg
from thalweg.cql import CqlError

ROOT = Path(__file__).parents[2]
COOKBOOK = re.findall(
    r"^```python\n(.*?)^```$", (ROOT / "docs" / "cookbook.md").read_text(), re.S | re.M
)
PYTHON_PAGE = re.findall(
    r"^```python\n(.*?)^```$", (ROOT / "docs" / "python.md").read_text(), re.S | re.M
)
_BLOCK = re.search(
    r"(?:^    .*\n)+",
    (ROOT / "README.md").read_text().partition("notebook, without a service:")[2],
    re.M,
)
README = textwrap.dedent(_BLOCK[0]) if _BLOCK else ""
EMPTY = {"br", "img", "meta", "link", "input", "hr"}


class Balanced(HTMLParser):
    """HTML in which every tag is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


class Notebook:
    """Cells share their names; the value of a last expression is shown, as HTML if it can be."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}

    def run(self, cell: str) -> str:
        """What stands below the cell."""
        tree, printed = ast.parse(cell), io.StringIO()
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, "<cell>", "exec"), self.names)
            value = None
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), self.names)
        return printed.getvalue() + self._shown(value)

    def _shown(self, value: Any) -> str:
        if value is None:
            return ""
        if not hasattr(value, "_repr_html_"):
            return repr(value)
        text = str(value._repr_html_())
        Balanced(text)
        return text


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    monkeypatch.chdir(tmp_path)
    yield Notebook()
    if Thalweg._running is not None:
        Thalweg._running.close()


def test_the_cookbooks_cells_run_again_and_again(notebook: Notebook) -> None:
    assert len(COOKBOOK) >= 6
    shown = [[notebook.run(cell) for cell in COOKBOOK] for _ in range(3)]
    _, query, changes, top, followed, session = shown[0]
    assert "now: 2 rows" in query
    assert ">250<" in query
    assert "shape: (" in changes  # a Polars frame, with its own table
    assert "<td>250</td>" in top
    assert "0 + {'symbol': 'A', 'cents': 100}" in followed
    assert "Trade" in session
    assert "best" in session
    assert [q.name for q in notebook.names["session"].queries] == ["best"]  # run three times
    # Cells in another order, too.
    for cell in reversed(COOKBOOK):
        notebook.run(cell)


def test_the_readmes_cell_runs_again(notebook: Notebook) -> None:
    for _ in range(3):
        shown = notebook.run(README)
        assert "<b>hot</b>" in shown
        assert '<td class="t">roof</td>' in shown
    assert len(notebook.names["session"].queries) == 1


def test_the_python_pages_cells_run_in_order(notebook: Notebook) -> None:
    for cell in PYTHON_PAGE:
        text = notebook.run(cell.replace("local[2]", "in-process"))
        for expected in re.findall(r"^# (\d.*|\[.*)$", cell, re.M):
            assert expected in text


def test_a_cell_that_follows_is_interrupted_and_the_notebook_goes_on(notebook: Notebook) -> None:
    notebook.run(README)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        notebook.run("for change in hot.results(follow=True):\n    seen = change")
    timer.join()
    notebook.run("session.stream('Reading').push({'ts': 9, 'sensor': 'oven', 'celsius': 180.0})")
    notebook.run("session.stream('Reading').push({'ts': 10, 'sensor': 'oven', 'celsius': 18.0})")
    assert "oven" in notebook.run("session.settle()\nhot")
    assert notebook.run("session.site.health().ok") == "True"


def test_a_mistake_in_a_cell_leaves_all_as_it_was(notebook: Notebook) -> None:
    notebook.run(README)
    with pytest.raises(CqlError, match='did you mean "celsius"') as mistake:
        notebook.run("session.cql('CREATE QUERY x AS SELECT celsus FROM Reading [Now]')")
    assert "^^^^^^" in str(mistake.value)
    with pytest.raises(CqlError, match="CREATE STREAM IF NOT EXISTS leaves it as it is"):
        notebook.run("session.cql('CREATE STREAM Reading (a INTEGER) TIMESTAMP BY ts')")
    assert "<b>hot</b>" in notebook.run("hot")


def test_what_is_gone_is_shown_as_gone(notebook: Notebook) -> None:
    notebook.run(README)
    notebook.run("hot.stop()")
    assert "has been stopped" in notebook.run("hot")
