import subprocess
import sys

WORK = """
import threading
from thalweg.cli.stopping import stop_within
threading.Thread(target=threading.Event().wait).start()  # a thread that nobody can stop
stop_within({seconds})
{then}
"""


def run(seconds: float, then: str = "") -> subprocess.CompletedProcess[str]:
    text = WORK.format(seconds=seconds, then=then)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)


def test_what_does_not_stop_is_stopped_hard() -> None:
    ended = run(0.1)
    assert ended.returncode == 1
    assert "still at work after 0.1 s: stopped hard" in ended.stderr


def test_what_stops_in_time_is_left_alone() -> None:
    ended = run(3600, "import os; os._exit(0)")
    assert (ended.returncode, ended.stderr) == (0, "")
