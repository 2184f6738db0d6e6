"""What `thalweg doctor` looks at."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

LEAST_MEMORY_GIB = 4
LEAST_DISK_GIB = 2


@dataclass(frozen=True, slots=True)
class Surroundings:
    data_dir: Path
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    verdict: str  # ok, warning, failed
    found: str
    advice: str = ""


def python(_: Surroundings) -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    return Finding("Python", "ok", f"{found} at {sys.executable}")


def java(_: Surroundings) -> Finding:
    from thalweg.engine.java import java_problem

    problem = java_problem()
    if problem is not None:
        reason, advice = problem.split(": ", 1)
        return Finding("Java", "failed", reason, advice)
    where = os.environ.get("JAVA_HOME") or shutil.which("java")
    return Finding("Java", "ok", f"17 or later at {where}")


def packages(_: Surroundings) -> Finding:
    """Whether what the project asks for is installed."""
    wanted = [
        re.split(r"[\s<>=!~;\[]", line, maxsplit=1)[0]
        for line in requires("thalweg") or []
        if "extra ==" not in line
    ]
    missing = [name for name in wanted if not _is_installed(name)]
    if missing:
        return Finding("packages", "failed", f"without {', '.join(missing)}", "run make setup")
    return Finding("packages", "ok", f"all {len(wanted)}, with PySpark {version('pyspark')}")


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def memory(_: Surroundings) -> Finding:
    try:
        gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    except (ValueError, OSError):
        return Finding("memory", "warning", "can't be told on this system")
    if gib < LEAST_MEMORY_GIB:
        advice = f"Spark asks for 4 GiB: lower spark.driver.memory below {gib:.1f}g"
        return Finding("memory", "warning", f"{gib:.1f} GiB", advice)
    return Finding("memory", "ok", f"{gib:.1f} GiB, {os.cpu_count()} cores")


def data_dir(surroundings: Surroundings) -> Finding:
    """Whether the data directory, or the folder that it will be made in, can be written."""
    folder = surroundings.data_dir.resolve()
    there = next(p for p in (folder, *folder.parents) if p.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        advice = "choose another with --data-dir"
        return Finding("data dir", "failed", f"{there}: {error.strerror}", advice)
    gib = shutil.disk_usage(there).free / (1 << 30)
    if gib < LEAST_DISK_GIB:
        return Finding("data dir", "warning", f"{folder}, {gib:.1f} GiB free", "make some room")
    return Finding("data dir", "ok", f"{folder}, {gib:.0f} GiB free")


def port(surroundings: Surroundings) -> Finding:
    place = f"{surroundings.host}:{surroundings.port}"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((surroundings.host, surroundings.port))
        except OSError as error:
            advice = "a service may be running (thalweg ps), or choose another with --port"
            return Finding("port", "warning", f"{place}: {error.strerror}", advice)
    return Finding("port", "ok", f"{place} is free")


CHECKS = (python, java, packages, memory, data_dir, port)
