"""Systems whose pins clash with ours: each in an environment and a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.systems.outcome import Unable

ROOT = Path(__file__).parents[2]


def interpreter(system: str, variable: str) -> Path:
    """The Python that has the system (`make SYSTEM`); raises Unable."""
    name = system.lower()
    python = Path(os.environ.get(variable, ROOT / f".venv-{name}" / "bin" / "python"))
    if not python.exists():
        raise Unable(
            f"{system} is not installed: run `make {name}`, or name a Python that has it in "
            f"{variable}"
        )
    return python


def run_job(
    system: str,
    variable: str,
    job: Mapping[str, Any],
    folder: Path,
    limit_s: float,
    environment: Mapping[str, str] | None = None,
    module: str | None = None,
) -> dict[str, float]:
    """`bench.systems.SYSTEM_job` there, or another module; what it tells are times."""
    (folder / "job.json").write_text(json.dumps(job))
    name = f"bench.systems.{module or f'{system.lower()}_job'}"
    command = [interpreter(system, variable), "-m", name, folder / "job.json"]
    log = folder / "log.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=output,
            start_new_session=True,  # its JVM goes with it
        )
        try:
            told, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise Unable(f"stopped after {limit_s:.0f} s") from None
        finally:
            _end(process)
    if process.returncode:
        raise Unable(f"{system} failed: {_reason(log)}")
    return dict(json.loads(told.splitlines()[-1]))


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _reason(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    causes = [line.strip() for line in lines if "Caused by:" in line or "Error" in line]
    return (causes or lines or ["it said nothing"])[-1]
