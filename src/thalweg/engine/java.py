"""Finds the Java that Spark's launcher would start, and says in one line what is wrong with it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

OLDEST = 17


def java_problem() -> str | None:
    """None where Spark will find Java 17 or later; else one line on what to do."""
    java = _java_in_use()
    if java is None:
        return (
            f"No Java found: install Java {OLDEST} or later (Debian: apt-get install "
            "openjdk-17-jre-headless; macOS: brew install openjdk@17) or set JAVA_HOME."
        )
    major = _major_version(java)
    if major is None:
        return f"{java} does not run: set JAVA_HOME to Java {OLDEST} or later."
    if major < OLDEST:
        return f"{java} is Java {major}, Spark needs {OLDEST} or later: set JAVA_HOME to one."
    return None


def _java_in_use() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    return Path(found) if found else None


def _major_version(java: Path) -> int | None:
    try:
        run = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # "17.0.15" is 17; the form before Java 9, "1.8.0_392", is 8.
    match = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)
    return int(match.group(1)) if match else None
