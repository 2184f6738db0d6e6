"""How many cases a drawn test plays: some in the suite, many in `make soak` (THALWEG_DRAWN)."""

import os

_TIMES = int(os.environ.get("THALWEG_DRAWN", "1"))


def examples(count: int) -> int:
    return count * _TIMES
