import io

import pytest
from rich.console import Console
from tests.engine.sinks.emissions import NULLS, PLAIN, emission, numbers

from thalweg.engine.sinks.terminal import TerminalSink


def shown(*emissions, terminal: bool = False, **options) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=200, highlight=False)
    sink = TerminalSink(console, **options)
    for each in emissions:
        sink.write(each)
    return out.getvalue()


def test_a_line_says_query_instant_sign_and_values():
    lines = shown(emission(1, (7, 1, *PLAIN), (8, -1, *NULLS))).splitlines()
    assert lines[0].startswith("q  7  +  a=1  ts=one  X.A=0.5  price=1.50  day=2025-01-02  at=")
    assert lines[1].startswith("q  8  -  a=NULL")


def test_instants_can_be_shown_as_times_of_day():
    assert shown(numbers(1, 3_723_004), resolution_us=1000).startswith("q  01:02:03.004  +")


def test_a_large_tick_is_cut_short_and_says_so():
    lines = shown(numbers(1, *range(30)), most=20).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "q  … and 10 more"


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch):
    assert "\x1b[" in shown(numbers(1, 1), terminal=True)
    assert "\x1b[" not in shown(numbers(1, 1), terminal=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in shown(numbers(1, 1), terminal=True)


def test_square_brackets_in_values_are_just_that():
    row = (1, "[red]x[/red]", *PLAIN[2:])
    assert "ts=[red]x[/red]" in shown(emission(1, (7, 1, *row)))
