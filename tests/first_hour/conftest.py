"""A shell in an empty folder, with `thalweg` on its path and a port of its own."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Paste = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture
def paste(tmp_path: Path) -> Iterator[Paste]:
    """Runs a block as if it were pasted into a shell."""
    programs = tmp_path / "bin"
    programs.mkdir()
    command = programs / "thalweg"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m thalweg.cli "$@"\n')
    command.chmod(0o755)
    here = tmp_path / "here"
    here.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "PYTHON": sys.executable,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "THALWEG_PORT": str(port),
        "THALWEG_URL": f"http://127.0.0.1:{port}",
        "THALWEG_WAIT_S": "60",
        "NO_COLOR": "1",
        "COLUMNS": "200",
    }

    def run(block: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-e"],
            input=block,
            cwd=here,
            env=environment,
            capture_output=True,
            text=True,
            timeout=590,  # a test has 600 s
        )

    yield run
    for folder in here.glob("*/network.json"):
        subprocess.run(
            [command, "network", "down", "--data-dir", folder.parent], env=environment, check=False
        )
    for folder in here.glob("*/lock"):
        subprocess.run(
            [command, "dev", "--stop", "--data-dir", folder.parent], env=environment, check=False
        )
