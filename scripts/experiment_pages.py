"""Make the pages of docs/experiments anew: each by the command that their README gives for it.

    python scripts/experiment_pages.py [NAME…] [--list]

Without names, those that were made by another command or by an earlier version, which tell none. A
page is replaced when its run has ended, with its figures and numbers; what fails is told at the
end. Some pages take hours: THALWEG_RESUME=FOLDER lets those about trees go on where they were.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "experiments"
KEPT = (".md", ".csv", ".svg")  # of what a run writes
ROW = re.compile(r"^\| [^|]+ \| `([^`]+)` \|", re.M)
MADE_BY = re.compile(r"^Made by `thalweg experiment ([^`]+)`", re.M)


def commands(readme: str) -> dict[str, str]:
    """Of each page, what follows `thalweg experiment`."""
    return {command.split()[0]: command for command in ROW.findall(readme)}


def stale(pages: Path) -> dict[str, str]:
    """The pages that are missing, or not the output of their command, with that command."""
    return {
        name: command
        for name, command in commands((pages / "README.md").read_text()).items()
        if _made_by(pages / f"{name}.md") != command
    }


def _made_by(page: Path) -> str | None:
    found = MADE_BY.search(page.read_text()) if page.exists() else None
    return found.group(1) if found else None


def replace(name: str, made: Path, pages: Path) -> None:
    """The page as it was made now; figures that it no longer has go."""
    for old in (*pages.glob(f"{name}-*.svg"), *pages.glob(f"{name}-*.csv")):
        old.unlink()
    for file in made.iterdir():
        if file.suffix in KEPT:
            shutil.copy(file, pages / file.name)


def make(name: str, command: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        program = [str(Path(sys.executable).parent / "thalweg"), "experiment"]
        ran = subprocess.run([*program, *command.split(), "--out", folder], cwd=ROOT, check=False)
        if ran.returncode == 0:
            replace(name, Path(folder), PAGES)
        return ran.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="say what would be run")
    given = parser.parse_args()
    known = commands((PAGES / "README.md").read_text())
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"{unknown[0]}: docs/experiments/README.md gives no command for it")
    wanted = {name: known[name] for name in given.names} or stale(PAGES)
    if given.list:
        print("\n".join(wanted.values()))
        return 0
    failed = [name for name, command in wanted.items() if not make(name, command)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
