"""The table of all figures in docs/experiments/README.md says what the catalogue has."""

import re
from pathlib import Path

from thalweg.experiments.registry import experiments

PAGE = Path(__file__).parents[2] / "docs" / "experiments" / "README.md"
STATES = {"done", "partly", "test", "missing", "not reproducible"}
SOURCES = {"COSMOS", "SAND", "D-CAPE", "DHTJoin", "SQPR"}


def rows() -> list[list[str]]:
    table = PAGE.read_text().split("## All figures and tables")[1]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def named(where: str) -> set[str]:
    return set(re.findall(r"[a-z]+(?:-[a-z]+)+", where))


def test_what_is_done_names_experiments_that_are_there_and_every_experiment_is_named() -> None:
    found: set[str] = set()
    for _, figure, _, state, where in rows():
        assert state in STATES, figure
        if state in ("done", "partly"):
            assert named(where), figure
            found |= named(where)
    assert found == set(experiments())


def test_every_source_has_its_rows_and_every_gap_a_reason() -> None:
    assert {row[0] for row in rows()} >= SOURCES
    assert all(where for *_, where in rows())


def test_every_page_that_is_linked_is_there() -> None:
    linked = re.findall(r"\]\(([a-z-]+\.md)\)", PAGE.read_text())
    assert linked
    assert [name for name in linked if not (PAGE.parent / name).exists()] == []
