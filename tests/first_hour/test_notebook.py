"""Python blocks of the pages, run in a notebook: again and again, in another order, interrupted."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.first_hour.notebook import CellError, Notebook

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


@pytest.fixture(scope="module")
def kernel() -> Iterator[Notebook]:
    started = Notebook()
    yield started
    started.close()


@pytest.fixture
def notebook(kernel: Notebook, tmp_path: Path) -> Notebook:
    kernel.begin(tmp_path)
    return kernel


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
    names = notebook.run("[q.name for q in session.queries]")
    assert names == "['best']"  # run three times
    # Cells in another order, too.
    for cell in reversed(COOKBOOK):
        notebook.run(cell)


def test_the_readmes_cell_runs_again(notebook: Notebook) -> None:
    for _ in range(3):
        shown = notebook.run(README)
        assert "<b>hot</b>" in shown
        assert '<td class="t">roof</td>' in shown
    assert notebook.run("len(session.queries)") == "1"


def test_the_python_pages_cells_run_in_order(notebook: Notebook) -> None:
    for cell in PYTHON_PAGE:
        text = notebook.run(cell.replace("local[2]", "in-process"))
        for expected in re.findall(r"^# (\d.*|\[.*)$", cell, re.M):
            assert expected in text


def test_a_cell_that_follows_is_interrupted_and_the_notebook_goes_on(notebook: Notebook) -> None:
    notebook.run(README)
    with pytest.raises(CellError) as ended:
        notebook.run(
            "for change in hot.results(follow=True):\n    print(change.row['sensor'], flush=True)",
            interrupt_at="roof",
        )
    assert ended.value.name == "KeyboardInterrupt"
    notebook.run("session.stream('Reading').push({'ts': 9, 'sensor': 'oven', 'celsius': 180.0})")
    notebook.run("session.stream('Reading').push({'ts': 10, 'sensor': 'oven', 'celsius': 18.0})")
    assert "oven" in notebook.run("session.settle()\nhot")
    assert notebook.run("session.site.health().ok") == "True"


def test_a_mistake_in_a_cell_leaves_all_as_it_was(notebook: Notebook) -> None:
    notebook.run(README)
    with pytest.raises(CellError, match='did you mean "celsius"') as mistake:
        notebook.run("session.cql('CREATE QUERY x AS SELECT celsus FROM Reading [Now]')")
    assert mistake.value.name == "CqlError"
    assert "^^^^^^" in str(mistake.value)
    with pytest.raises(CellError, match="CREATE STREAM IF NOT EXISTS leaves it as it is"):
        notebook.run("session.cql('CREATE STREAM Reading (a INTEGER) TIMESTAMP BY ts')")
    assert "<b>hot</b>" in notebook.run("hot")


def test_what_is_gone_is_shown_as_gone(notebook: Notebook) -> None:
    notebook.run(README)
    notebook.run("hot.stop()")
    assert "has been stopped" in notebook.run("hot")
