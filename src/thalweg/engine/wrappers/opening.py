"""Opens the engine that a node was told to have."""

from __future__ import annotations

from pathlib import Path

from thalweg.engine.wrappers.interface import Wrapper
from thalweg.plan.engines import NATIVE, SHARED


def open_wrapper(engine: str, folder: Path, master: str) -> Wrapper:
    """With what it had before; Spark engines run on `master`."""
    if engine == SHARED:
        from thalweg.engine.wrappers.shared import SharedWrapper

        return SharedWrapper(folder / SHARED)
    if engine == NATIVE:
        # Spark takes a second to import: whoever does without it does not pay for it.
        from thalweg.engine.session import spark_session
        from thalweg.engine.wrappers.native import NativeWrapper

        return NativeWrapper(folder / NATIVE, spark_session(master), owns_spark=True)
    raise ValueError(f"there is no engine {engine}")
