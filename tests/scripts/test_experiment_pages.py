"""Pages are what their command made, or the README names them among those to be run again."""

import re
from pathlib import Path

import pytest

from scripts import experiment_pages
from thalweg.experiments.registry import experiments

README = """\
| page | command | source |
|---|---|---|
| [As it was](as-it-was.md) | `as-it-was --seeds 3` | somebody |
| [Old](old.md) | `old` | somebody |
| Not there | `not-there` | nobody |

| source | figure | where |
|---|---|---|
| somebody | 3 | `elsewhere` |
"""


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "as-it-was.md").write_text(
        "# As it was\n\nMade by `thalweg experiment as-it-was --seeds 3` in 2 s.\n"
    )
    (tmp_path / "old.md").write_text("# Old\n\nMade by `thalweg experiment old --quick` in 2 s.\n")
    return tmp_path


def test_pages_of_another_command_and_missing_ones_are_to_be_made(pages: Path) -> None:
    assert experiment_pages.stale(pages) == {"old": "old", "not-there": "not-there"}


def test_a_new_page_comes_with_its_figures_and_without_those_of_the_old(pages: Path) -> None:
    made = pages / "made"
    made.mkdir()
    (pages / "old-before.svg").write_text("")
    (pages / "older.md").write_text("")
    (made / "old.md").write_text("Made by `thalweg experiment old` in 3 s.\n")
    for name in ("old-now.svg", "old-now.png", "old.csv", "old.json"):
        (made / name).write_text("")
    experiment_pages.replace("old", made, pages)
    assert experiment_pages.stale(pages) == {"not-there": "not-there"}
    there = {file.name for file in pages.iterdir() if file.name.startswith("old")}
    assert there == {"old.md", "old-now.svg", "old.csv", "older.md"}


def test_the_readme_has_a_command_for_every_page_and_names_those_to_be_run_again() -> None:
    readme = (experiment_pages.PAGES / "README.md").read_text()
    known = experiment_pages.commands(readme)
    assert set(known) <= set(experiments())
    there = {page.stem for page in experiment_pages.PAGES.glob("*.md")} - {"README"}
    assert there <= set(known)
    told = readme.split("## To be run again")[1].split("\nWhat is lost")[0]
    items = re.findall(r"^- ((?:`[a-z-]+`,?\s*)+):", told, re.M)
    named = {name for item in items for name in re.findall(r"`([a-z-]+)`", item)}
    assert named >= set(experiment_pages.stale(experiment_pages.PAGES))
