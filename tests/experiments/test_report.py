"""A report as people see it."""

import pytest

from thalweg.experiments.report import Beside, Goal, Report, publish

ROW = {
    "method": "hierarchical, with a long name",
    **{f"queries a second by way {i}": 1_234_567 + i for i in range(9)},
}


def _report(**parts) -> Report:
    return Report("wide", "A wide one", {}, [ROW], **parts)


@pytest.mark.parametrize("columns", ["40", "80", "300"])
def test_no_number_is_cut_off_however_narrow_the_terminal(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    goals = [Goal("queries a second", 1_234_567, 1_000_000)]
    beside = [Beside("figure 1", "some [100]", "more", "words " * 30)]
    publish(_report(goals=goals, beside=beside))
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert [f"{1_234_567 + i:,} " in shown for i in range(9)] == [True] * 9
    assert "[100]" in shown


def test_a_table_is_no_wider_than_its_numbers(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "300")
    publish(_report())
    assert max(map(len, capsys.readouterr().out.splitlines())) < 150
