"""What is to be replayed, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from thalweg.engine.native.staging import Source
from thalweg.plan.nodes import Node


@dataclass(frozen=True, slots=True)
class Task:
    """A plan and its recorded inputs by stream name; options as the reference has them."""

    plan: Node
    sources: Mapping[str, Source]
    horizons: Mapping[str, int] | None = None
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """`queries_per_job` above 1 puts several queries into one streaming query, which saves
    start-up time and delays the dropping of state, since they share one watermark."""

    files_per_trigger: int = 1
    rows_per_file: int = 250_000
    queries_per_job: int = 1
    partitions: int | None = None  # of the state; None takes the session's
