import json
import os
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from thalweg.cli.demo.across import QUERIES, statements
from thalweg.cli.demo.command import _script
from thalweg.cli.demo.pulse import Picture
from thalweg.cli.demo.screen import Screen
from thalweg.cli.demo.sparkline import sparkline
from thalweg.cli.main import app
from thalweg.engine.changelog import Change
from thalweg.engine.site.status import QueryStatus, StreamStatus


def a_query(number: int, state: str = "running", error: str | None = None) -> QueryStatus:
    return QueryStatus(
        name=f"query_{number}",
        state=state,
        kind="ISTREAM",
        columns=[("a", "INTEGER"), ("b", "DOUBLE")],
        streams=["S"],
        flow="f",
        group=None,
        rows=number,
        cost_s=0.5,
        started=None,
        horizons={},
        complete_from=None,
        frontier="9",
        error=error,
        sinks=[],
        delay_ms=12.5,
        pr=2.5,
        cpr=0.0,
        text="",
        version=1,
        resolution_us=1000,
        is_temporal=False,
    )


def a_picture(queries: int, elapsed_s: float = 1.0) -> Picture:
    found = [a_query(i) for i in range(queries)]
    found[0] = a_query(0, "parked", "tick 3: it broke")
    stream = StreamStatus(
        "S", "stream", [], "ts", None, "flowing", 1234, 5, 0, 0, "noon", None, 1000, False
    )
    return Picture(
        elapsed_s,
        found,
        [stream],
        {q.name: Change(1, "+", (None, 2.5)) for q in found[1:]},
        {q.name: 7.0 for q in found},
        {"S": 99.0},
        1234,
        [10.0, 99.0],
        12,
        [0.1, 0.3, 0.2],
        None,
    )


def rendered(picture: Picture, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height, record=True, color_system=None, file=None)
    with console.capture() as captured:
        screen = Screen("http://127.0.0.1:1", 60.0, "on Spark local[2]")
        console.print(screen.render(picture, width, height), height=height)
    return captured.get().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (200, 70)])
def test_the_screen_fits_its_terminal(width: int, height: int) -> None:
    lines = rendered(a_picture(39), width, height)
    assert len(lines) == height
    assert all(len(line) <= width for line in lines)
    text = "\n".join(lines)
    assert "events 1,234" in text
    assert "a NULL  b 2.50" in text
    assert "noon" in text


def test_queries_that_do_not_fit_take_turns() -> None:
    shown = set()
    for elapsed in range(0, 60, 4):
        text = "\n".join(rendered(a_picture(39, float(elapsed)), 100, 30))
        shown |= {i for i in range(39) if f"query_{i} " in text}
    assert shown == set(range(39))


def test_a_query_that_is_parked_shows_why() -> None:
    assert "tick 3: it broke" in "\n".join(rendered(a_picture(3), 100, 30))


def test_a_sparkline_is_as_wide_as_asked() -> None:
    assert sparkline([], 4) == "    "
    assert sparkline([0, 0], 4) == "  ▁▁"
    assert sparkline([0, 1, 2, 4], 4) == "▁▃▅█"
    assert sparkline(range(100), 4) == "████"


def test_the_demo_runs_and_sums_up(tmp_path: Path) -> None:
    svg = tmp_path / "pictures" / "demo.svg"
    done = CliRunner().invoke(
        app,
        ["demo", "--seconds", "6", "--master", "in-process", "--json", "--svg", str(svg)],
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["events"] > 1000
    assert found["ticks"] >= 2
    assert len(found["queries"]) >= 36
    states = {q["state"] for q in found["queries"]}
    assert "running" in states
    assert states <= {"running", "waiting"}  # on a busy machine, some wait for their first tick
    assert any(q["rows"] > 0 for q in found["queries"])
    assert "standing" in svg.read_text()


@pytest.mark.heavy
def test_the_demo_runs_across_sites(tmp_path: Path) -> None:
    svg = tmp_path / "map.svg"
    options = ["--nodes", "3", "--seconds", "8", "--master", "in-process", "--json"]
    done = CliRunner().invoke(app, ["demo", *options, "--svg", str(svg)])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [n["name"] for n in found["nodes"]] == ["oslo", "paris", "rome"]
    assert all(n["answers"] for n in found["nodes"])
    assert sorted(q["name"] for q in found["queries"]) == sorted(QUERIES)
    assert all(q["state"] == "running" for q in found["queries"])
    homes = {d["name"]: n["name"] for n in found["nodes"] for d in n["defines"]}
    assert len({homes[s] for q in found["queries"] for s in q["streams"]}) == 3
    assert sum(link["arrived"] for n in found["nodes"] for link in n["links"]) > 100
    assert sum(bool(q["rows"]) for q in found["queries"]) >= 4
    assert "site oslo" in svg.read_text()
    assert not has_nodes()


def has_nodes() -> bool:
    """Whether this process still has children that are nodes."""
    mine = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    children = [pid for task in mine for pid in task.read_text().split()]
    return any(b"thalweg.cli" in _read(Path(f"/proc/{pid}/cmdline")) for pid in children)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_the_queries_of_the_demo_across_sites_are_among_the_auctions() -> None:
    streams, queries = statements(_script(5.0, 600.0))
    assert len(streams) == 4
    assert len(queries) == len(QUERIES)
