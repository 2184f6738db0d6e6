"""The cookbook's blocks, pasted literally, print what the page shows."""

import re
from pathlib import Path

import pytest
from tests.first_hour.conftest import Paste

PAGE = (Path(__file__).parents[2] / "docs" / "cookbook.md").read_text()
RECIPES = re.findall(r"^## (.*?)$.*?^```sh\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.S | re.M)


@pytest.mark.parametrize(("title", "block", "shown"), RECIPES, ids=[r[0] for r in RECIPES])
def test_a_recipe_prints_what_the_page_shows(
    paste: Paste, title: str, block: str, shown: str
) -> None:
    done = paste(block)
    assert done.returncode == 0, done.stderr
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    assert re.fullmatch(pattern, done.stdout), done.stdout


def test_every_recipe_of_the_page_is_run() -> None:
    in_notebook = 1  # tests/first_hour/test_notebook.py
    assert len(RECIPES) == PAGE.count("\n## ") - in_notebook >= 11
