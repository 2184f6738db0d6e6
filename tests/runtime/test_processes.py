"""Real processes that are killed, stopped and restarted: membership heals."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.runtime.waiting import eventually

ROOT = Path(__file__).parents[2]


class Process:
    """A member, and the last that it said."""

    def __init__(self, folder, listen="127.0.0.1:0", contacts=()):
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.member_process", str(folder), listen, *contacts],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.said = None
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        eventually(lambda: self.said, within_s=30)
        self.address = self.said["address"]

    def _listen(self):
        for line in self._child.stdout:
            if line.endswith("}\n"):
                self.said = json.loads(line)

    @property
    def up(self):
        return set(self.said["up"])

    def signal(self, number):
        self._child.send_signal(number)

    def kill(self):
        """-9: no goodbye, no last write."""
        self._child.kill()
        self._child.wait(10)
        self._reader.join(10)


@pytest.fixture
def started(tmp_path):
    processes = []

    def start(listen="127.0.0.1:0", contacts=()):
        processes.append(Process(tmp_path, listen, contacts))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()


def test_killed_stopped_and_restarted_members_are_noticed_and_found_again(started):
    first = started()
    rest = [started(contacts=(first.address,)) for _ in range(3)]
    everybody = {p.address for p in (first, *rest)}

    def all_know(processes, expected):
        return all(p.up == expected - {p.address} for p in processes)

    eventually(lambda: all_know((first, *rest), everybody), within_s=30)

    victim, *others = rest
    victim.kill()
    eventually(lambda: all_know((first, *others), everybody - {victim.address}), within_s=30)

    frozen = others[0]
    frozen.signal(signal.SIGSTOP)
    awake = (first, others[1])
    eventually(lambda: all_know(awake, everybody - {victim.address, frozen.address}), within_s=30)
    frozen.signal(signal.SIGCONT)

    again = started(listen=victim.address)  # with its disk; nobody introduces it
    eventually(lambda: all_know((first, *others, again), everybody), within_s=30)
    assert again.said["lives"] == 2
