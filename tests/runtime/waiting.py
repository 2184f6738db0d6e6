"""Waiting for what live nodes reach in their own time: patiently, since machines are busy."""

import time


def eventually(check, within_s=240.0, every_s=0.05):
    """The first true answer of `check`; if none comes in time, fail with its last one."""
    end_s = time.monotonic() + within_s
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < end_s, f"not within {within_s} s: {check.__doc__ or found!r}"
        time.sleep(every_s)
