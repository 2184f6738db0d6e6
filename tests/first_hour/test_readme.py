"""The README's blocks, pasted literally, work."""

import re
import textwrap
from pathlib import Path

from tests.first_hour.conftest import Paste

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCKS = [textwrap.dedent(b) for b in re.findall(r"(?:^    .*\n|^\n(?=    ))+", README, re.M)]


def block(start: str) -> str:
    (found,) = [b for b in BLOCKS if b.strip().startswith(start)]
    return found.strip("\n") + "\n"


def test_the_first_query_pasted_into_a_shell(paste: Paste) -> None:
    done = paste(block("thalweg dev --detach"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == [
        "hot",
        "1  +  sensor=roof  peak=31.0",
        "62  -  sensor=roof  peak=31.0",
    ]
    assert "✓ created stream Reading" in done.stderr


def test_a_service_that_is_only_being_started_is_waited_for(paste: Paste) -> None:
    """As people paste it who know shells: with &, and no wait."""
    text = block("thalweg dev --detach").replace(
        "thalweg dev --detach --master in-process", "thalweg dev --master in-process &"
    )
    done = paste(text)
    assert done.returncode == 0, done.stderr
    assert "62  -  sensor=roof  peak=31.0" in done.stdout


def test_the_python_block_pasted_into_a_session(paste: Paste) -> None:
    code = block("from thalweg import Thalweg")
    more = "session.stream('Reading').finish(); session.settle(); print(hot.results().to_polars())"
    done = paste(f"$PYTHON - <<'EOF'\n{code}{more}\nEOF\n")
    assert done.returncode == 0, done.stderr
    assert "roof" in done.stdout


def test_the_network_pasted_into_a_shell(paste: Paste) -> None:
    done = paste(block("thalweg network up"))
    assert done.returncode == 0, done.stderr
    assert "1  +  sensor=roof  celsius=31.0" in done.stdout
    assert "⇠ Reading from n1: 1 row up to end" in done.stdout
    assert "3 nodes have stopped" in done.stderr
