"""The examples run, say something, and say what the reference says."""

import io
import sys
from pathlib import Path

import pytest

from thalweg.cql import compile_script
from thalweg.engine.replay import Replay, replay

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*/*.cql"))


def run(script: Path, engine: str) -> bytes:
    out = io.BytesIO()
    queries = compile_script(script.read_text()).queries
    replay(Replay(queries, script.parent, engine=engine, tick_rows=50), to=out)
    return out.getvalue()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_says_what_the_reference_says(script: Path):
    lines = run(script, "shared")
    assert lines == run(script, "reference")
    for query in compile_script(script.read_text()).queries:
        assert lines.count(f'{{"query":"{query.name}",'.encode()) > 5


def test_the_sample_data_can_be_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import make_data

    monkeypatch.setattr(make_data, "HERE", tmp_path)
    for folder in ("auction", "packets", "stocks"):
        (tmp_path / folder).mkdir()
    make_data.auctions()
    make_data.packets()
    make_data.stocks()
    made = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    kept = {
        p.relative_to(EXAMPLES): p.read_bytes()
        for p in EXAMPLES.rglob("*")
        if p.suffix in (".csv", ".json")
    }
    assert made == kept
    sys.modules.pop("make_data")
