"""Long experiments go on where they were: what a case gave is kept, and not computed again.

Only where THALWEG_RESUME names a folder. What is kept counts for the same parameters and seed; who
changes the code empties the folder.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

R = TypeVar("R")


def once(key: tuple[object, ...], make: Callable[[], R]) -> R:
    """What `make` gives, or gave when it was asked with this key."""
    folder = os.environ.get("THALWEG_RESUME")
    if not folder:
        return make()
    kept = (
        Path(folder) / f"{hashlib.blake2b(repr(key).encode(), digest_size=12).hexdigest()}.pickle"
    )
    if kept.exists():
        found: R = pickle.loads(kept.read_bytes())
        return found
    made = make()
    kept.parent.mkdir(parents=True, exist_ok=True)
    fresh = kept.with_suffix(".new")
    fresh.write_bytes(pickle.dumps(made))
    fresh.replace(kept)  # whole, or not at all
    return made
