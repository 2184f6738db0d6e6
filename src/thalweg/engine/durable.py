"""What a crash of the machine must not undo."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Make a file durable, or, of a folder, the names in it, after one was created or renamed."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
