"""The nodes of a network on this machine, as processes."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from thalweg.cli.exits import CommandFailed

FILE, LOG = "network.json", "node.log"
LONGEST_START_S, LONGEST_STOP_S = 180.0, 60.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """A node that shall run."""

    name: str
    site: str = "here"
    master: str = "local[1]"
    port: int = 0  # of its service; 0: a free one
    strategy: str = "local"  # who decides where queries run that are handed in there
    cpu: float | None = None  # what it may be given to do: cores, bits per second
    out_bps: float | None = None
    in_bps: float | None = None


@dataclass(frozen=True, slots=True)
class Running:
    name: str
    pid: int
    url: str
    address: str


def load(folder: Path) -> list[Running]:
    """Those that `network up` has started in this folder."""
    try:
        return [Running(**row) for row in json.loads((folder / FILE).read_text())]
    except FileNotFoundError:
        return []


def save(folder: Path, nodes: Sequence[Running]) -> None:
    (folder / FILE).write_text(json.dumps([asdict(n) for n in nodes], indent=1))


def start(wanted: Wanted, folder: Path, join: Sequence[str], more: Sequence[str] = ()) -> Running:
    """One node, in a session of its own; returns when it answers."""
    home = folder / wanted.name
    home.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "thalweg.cli", "node", "--json"]
    command += ["--name", wanted.name, "--site", wanted.site, "--data-dir", str(home)]
    command += ["--master", wanted.master, *more]
    if wanted.port:
        command += ["--port", str(wanted.port)]
    command += ["--strategy", wanted.strategy]
    for flag in ("cpu", "out_bps", "in_bps"):
        if (limit := getattr(wanted, flag)) is not None:
            command += [f"--{flag.replace('_', '-')}", str(limit)]
    for address in join:
        command += ["--join", address]
    with (home / LOG).open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C here is not meant for it
            text=True,
        )
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], LONGEST_START_S)
    line = process.stdout.readline() if ready else ""
    if not line:
        process.terminate()
        raise CommandFailed(f"node {wanted.name} did not start: {_last_words(home / LOG)}")
    told = json.loads(line)
    return Running(wanted.name, process.pid, told["url"], told["address"])


def stop(nodes: Sequence[Running]) -> list[str]:
    """Ask all of them to stop, and wait; gives those that did not."""
    for node in nodes:
        if is_running(node):
            os.kill(node.pid, signal.SIGTERM)
    until = time.monotonic() + LONGEST_STOP_S
    left = list(nodes)
    while left and time.monotonic() < until:
        left = [n for n in left if is_running(n)]
        time.sleep(0.05)
    return [n.name for n in left]


def is_running(node: Running) -> bool:
    """Whether the process is there, and is this node: numbers are given again."""
    with suppress(ChildProcessError):  # a child of ours stays until it is asked for
        os.waitpid(node.pid, os.WNOHANG)
    try:
        words = Path(f"/proc/{node.pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return b"thalweg.cli" in words and node.name.encode() in words


def _last_words(log: Path) -> str:
    lines = [x for x in log.read_text(errors="replace").splitlines() if x.strip()]
    return lines[-1].removeprefix("error: ") if lines else f"see {log}"
