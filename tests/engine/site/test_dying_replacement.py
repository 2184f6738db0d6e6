"""kill -9 while a query is replaced: after a restart either the old or the new version stands, and
what was said, read or written, is that of one of the two."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine.site.conftest import OpenSite, rows, said
from tests.engine.site.dying_replacement import NEW

OLD_ROWS = [(1, "+", 10), (2, "+", 20), (5, "+", 50), (6, "+", 60)]
NEW_ROWS = [(1, "+", 10), (2, "+", 20), (3, "-", 10), (5, "+", 50), (6, "+", 60)]


@pytest.mark.parametrize("step", range(1, 8))
def test_either_version_stands_after_a_kill(step: int, open_here: OpenSite, tmp_path: Path) -> None:
    script = Path(__file__).with_name("dying_replacement.py")
    done = subprocess.run(
        [sys.executable, script, str(tmp_path), str(step)], capture_output=True, text=True
    )
    assert done.returncode == -9 or done.stdout == "survived\n", done.stderr
    site = open_here(durable=True)
    is_new = "WHERE" in site.book.script()
    assert is_new or step == 1
    stamps = [r[0] for r in said(site, "q")]
    arrived = site.streams()[0].arrived
    site.push("S", rows(*[(5, 50), (6, 60), (7, 0)][arrived - 3 :]))
    site.settle()
    expected = NEW_ROWS if is_new else OLD_ROWS
    found = said(site, "q")
    assert [r for r in found if r[2] != 0] == expected
    assert stamps == [r[0] for r in found][: len(stamps)]
    lines = [json.loads(x) for x in (tmp_path / "out").read_text().splitlines()]
    written = [(x["ts"], x["op"], *x["row"].values()) for x in lines if x["op"] != "end"]
    assert written == found
    assert [x["version"] for x in lines if x["op"] == "end"] == ([1] if is_new else [])
    if not is_new:
        site.execute(NEW)
