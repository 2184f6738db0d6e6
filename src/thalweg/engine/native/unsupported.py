"""What this engine does not take."""

from __future__ import annotations


class Unsupported(ValueError):
    """A query that plain Structured Streaming can't run exactly: which part, why, what instead."""

    def __init__(self, what: str, why: str) -> None:
        self.what = what
        self.why = why
        super().__init__(f"native can't run {what}: {why}. Use --engine shared or reference.")
