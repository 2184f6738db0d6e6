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

from thalweg.cli.client import Service
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
    mode: str = "homes"
    copies: int | None = None  # among peers
    room: int | None = None
    shedding: str | None = None
    engine: str = "shared"  # none: it only passes on
    trees: str | None = None  # who decides who has a stream from whom; None: all from its home
    round_s: float | None = None  # between rounds of adaptation; None: as usual
    replan_every_s: float | None = None  # how often it looks whether plans still fit
    balance: tuple[float, float] | None = None  # it balances: threshold, pause in seconds
    memory_bytes: float | None = None
    partners: str | None = None  # it has partners: their numbers, as the option has them
    controller: str | None = None  # who moves fragments; None: whoever is set up
    planning: str = "node"  # who decides where strategies put queries; or protocol
    balance_by: str | None = None  # the only way of the balancer's moves; None: the cheapest


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
    command += ["--master", wanted.master]
    if wanted.port:
        command += ["--port", str(wanted.port)]
    command += ["--strategy", wanted.strategy, "--mode", wanted.mode]
    limits = "cpu", "out_bps", "in_bps", "memory_bytes"
    for flag in (*limits, "copies", "room", "shedding", "replan_every_s"):
        if (limit := getattr(wanted, flag)) is not None:
            command += [f"--{flag.replace('_', '-')}", str(limit)]
    command += ["--engine", wanted.engine]
    if wanted.planning != "node":
        command += ["--planning", wanted.planning]
    if wanted.trees is not None:
        command += ["--trees", wanted.trees]
    if wanted.round_s is not None:
        command += ["--round-s", str(wanted.round_s)]
    if wanted.balance is not None:
        threshold, pause_s = wanted.balance
        command += ["--balance", str(threshold), "--balance-pause-s", str(pause_s)]
    if wanted.balance_by is not None:
        command += ["--balance-by", wanted.balance_by]
    if wanted.partners is not None:
        command += ["--partners", wanted.partners]
    if wanted.controller is not None:
        command += ["--controller", wanted.controller]
    for address in join:
        command += ["--join", address]
    command += more
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


def meet(nodes: Sequence[Running]) -> None:
    """Returns when each of them has heard of all: from then on any of them answers for all."""
    names = {n.name for n in nodes}
    until = time.monotonic() + LONGEST_START_S
    for node in nodes:
        with Service(node.url) as service:
            while unheard := names - {told["name"] for told in service.get("/network/nodes")}:
                if time.monotonic() > until:
                    missing = ", ".join(sorted(unheard))
                    raise CommandFailed(f"node {node.name} has not heard of {missing}: see its log")
                time.sleep(0.05)


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
