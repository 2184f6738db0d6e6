"""Scripts: the stories on file, and what is said about bad ones."""

from pathlib import Path

import pytest

from thalweg.sim.script import ScriptError, parse, perform
from thalweg.sim.stage import BadCommand, duration_us

SCRIPTS = sorted((Path(__file__).parent / "scripts").rglob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_script_prints_what_is_on_file(path):
    """If the change is meant: thalweg simulate FILE --rewrite."""
    text = path.read_text()
    assert perform(text, path.name) == text


def test_every_kind_of_line_survives_a_rewrite():
    text = "# A comment.\n\nscenario membership\nstart n1\n# Another.\nshow\n----\nn1:\n"
    assert perform(text) == text
    assert [len(block.lines) for block in parse(text)] == [1, 4]


def test_wrong_output_is_replaced():
    text = "scenario membership\nstart n1\ncheck\n----\nnonsense\n"
    assert perform(text) == text.replace("nonsense", "ok")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("start n1", "s.txt:1: begin with: scenario NAME"),
        ("----\nx", "s.txt:1: ---- without a command"),
        ("scenario membreship", "s.txt:1: there is no scenario 'membreship'; did you mean"),
        ("scenario chord size=3", "s.txt:1: 'size=3': expected seed=…, latency=…"),
        ("scenario chord\nrun 5", "s.txt:2: '5' is no duration; write 250ms"),
        ("scenario chord\nrun -5s", "s.txt:2: '-5s' is no duration"),
        ("scenario chord\nfly n1", "s.txt:2: there is no command 'fly'; there are scenario, "),
        ("scenario chord\ncrash n1", "s.txt:2: there is no host n1"),
        ("scenario chord\nstart n1\nstart n1", "s.txt:3: n1 is running already"),
        ("scenario chord\nstart", "s.txt:2: which node?"),
        ("scenario chord\npartition n1 n2", "s.txt:2: partition NODE … | NODE …"),
        ("scenario chord\nweather loss=200%", "s.txt:2: loss of 2.0: a share"),
        ("scenario chord\nwatch me", "s.txt:2: watch nothing, watch deliveries"),
    ],
)
def test_a_bad_script_says_where_and_what(text, message):
    with pytest.raises(ScriptError) as caught:
        perform(text, "s.txt")
    assert str(caught.value).startswith(message)


def test_durations_have_units():
    assert [duration_us(t) for t in ("7us", "250ms", "1.5s", "2min")] == [
        7,
        250_000,
        1_500_000,
        120_000_000,
    ]
    with pytest.raises(BadCommand, match="'fast' is no duration"):
        duration_us("fast")


def test_one_way_cuts_slow_nodes_weather_and_counts():
    lines = perform(
        "scenario membership\nstart n1 n2 n3\nrun 5s\ncut n1 n2 > n3\nweather loss=5%\n"
        "slow n2 1ms\nwatch events\nrun 8s\n\nwatch nothing\nmessages\nshow n1\n\n"
        "heal\nslow n2 0ms\ncheck 30s\n"
    )
    assert "membership Ping: " in lines
    assert "n3 down@" in lines
    assert lines.endswith("check 30s\n----\nok\n")
