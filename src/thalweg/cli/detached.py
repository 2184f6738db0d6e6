"""The service in the background: started with `dev --detach`, stopped with `dev --stop`."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from thalweg.cli.exits import FAILED, CommandFailed
from thalweg.cli.output import emit, emit_json, note, notes, plain

LONGEST_START_S, LONGEST_STOP_S = 180.0, 60.0
LOG = "service.log"
DEFAULT_FOLDER = Path("thalweg-data")  # of `dev`


def start_detached(data_dir: Path, *, as_json: bool) -> None:
    """The same command in a session of its own; returns when it has said its URL."""
    data_dir.mkdir(parents=True, exist_ok=True)
    log = data_dir / LOG
    arguments = [a for a in sys.argv[1:] if a not in ("--detach", "--json")]
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "thalweg.cli", *arguments, "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl-C here is not meant for it
            text=True,
        )
    with notes.status("starting the service"):
        line = _first_line(process)
    if not line:
        process.wait(timeout=LONGEST_STOP_S)
        raise CommandFailed(f"the service did not start: {_last_words(log)}", process.returncode)
    started = json.loads(line)
    if as_json:
        emit_json({**started, "pid": process.pid})
        return
    emit(started["url"])
    stop = plain(stop_command(data_dir))
    note(f"running as process {process.pid}; log: {plain(str(log))}; stop it with `{stop}`")


def _first_line(process: subprocess.Popen[str]) -> str:
    import select

    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], LONGEST_START_S)
    if not ready:
        process.terminate()
        return ""
    return process.stdout.readline()


def _last_words(log: Path) -> str:
    lines = [x for x in log.read_text(errors="replace").splitlines() if x.strip()]
    return lines[-1].removeprefix("error: ") if lines else f"see {log}"


def stop_detached(data_dir: Path) -> None:
    """Whoever has the data directory: the tick that runs is finished first."""
    import fcntl

    lock = data_dir / "lock"
    try:
        file = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        raise CommandFailed(
            f"no service has used {data_dir}: say which with --data-dir", FAILED
        ) from None
    try:
        if _is_free(file):
            note(f"no service has {data_dir}: nothing to stop")
            return
        pid = int(os.read(file, 20))
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + LONGEST_STOP_S
        while not _is_free(file):
            if time.monotonic() > until:
                raise CommandFailed(f"process {pid} has not stopped in {LONGEST_STOP_S:g} s")
            time.sleep(0.05)
        fcntl.flock(file, fcntl.LOCK_UN)
    finally:
        os.close(file)
    note(f"[green]✓[/] process {pid} has stopped")


def user_of(data_dir: Path) -> int | None:
    """The process that has the data directory; None if none has it."""
    try:
        file = os.open(data_dir / "lock", os.O_RDWR)
    except OSError:
        return None
    try:
        return None if _is_free(file) else int(os.read(file, 20))
    finally:
        os.close(file)


def stop_command(data_dir: Path) -> str:
    named = "" if data_dir == DEFAULT_FOLDER else f" --data-dir {shlex.quote(str(data_dir))}"
    return f"thalweg dev --stop{named}"


def _is_free(file: int) -> bool:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
