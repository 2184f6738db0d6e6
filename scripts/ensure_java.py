"""Sees that Spark will find Java 17 or later; on Debian installs one where there is none.

Looks where Spark's launcher looks: JAVA_HOME first, then `java` on PATH. Standard library only.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = 17
# Debian 12 and Ubuntu carry 17; later Debian releases only what `default` stands for.
PACKAGES = ("openjdk-17-jre-headless", "default-jre-headless")


def java_in_use() -> Path | None:
    """The `java` that Spark's launcher would start, if any."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    return Path(found) if found else None


def parse_major(banner: str) -> int | None:
    """Major version from `java -version`: 17 for "17.0.15", 8 for the old form "1.8.0_392"."""
    match = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(match.group(1)) if match else None


def major_version(java: Path) -> int | None:
    try:
        run = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_major(run.stderr + run.stdout)


def as_root() -> list[str] | None:
    """Command prefix that gives root rights, or None where there is no way to them."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo is None:
        return None
    if sys.stdin.isatty():
        return [sudo]
    # Nobody can type a password here: sudo must not ask for one.
    silent = subprocess.run([sudo, "-n", "true"], capture_output=True, check=False)
    return [sudo, "-n"] if silent.returncode == 0 else None


def install() -> bool:
    """Install a Java runtime through apt-get; False where that is not possible."""
    prefix = as_root()
    if prefix is None or shutil.which("apt-get") is None:
        return False
    apt_get = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet=2"]
    print("No Java found: installing one through apt-get ...", file=sys.stderr)
    subprocess.run([*apt_get, "update"], check=False)
    for package in PACKAGES:
        command = [*apt_get, "install", "--yes", "--no-install-recommends", package]
        if subprocess.run(command, check=False).returncode == 0:
            return True
    return False


def complaint() -> str | None:
    """What is wrong with the Java in use, in one line, or None when nothing is."""
    java = java_in_use()
    if java is None:
        return (
            f"No Java found: install Java {OLDEST} or later (Debian: apt-get install "
            f"{PACKAGES[0]}; macOS: brew install openjdk@17) or set JAVA_HOME, then try again."
        )
    found = major_version(java)
    if found is not None and found >= OLDEST:
        return None
    is_what = "does not run" if found is None else f"is Java {found}"
    return (
        f"{java} {is_what}, and Spark needs Java {OLDEST} or later: "
        "set JAVA_HOME to a newer one, then try again."
    )


def main() -> int:
    if java_in_use() is None:
        install()
    problem = complaint()
    if problem:
        print(problem, file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
