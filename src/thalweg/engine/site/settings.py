"""What can be set about a running site."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from thalweg.engine.paths import ANYWHERE, AllowedFolders
from thalweg.engine.site.ticker import TICK_INTERVAL_S, TICK_ROWS
from thalweg.engine.sources.feed import LARGEST_BACKLOG


@dataclass(frozen=True, slots=True)
class SiteSettings:
    tick_rows: int = TICK_ROWS
    tick_interval_s: float = TICK_INTERVAL_S
    retained_ticks: int = 5_000  # so long can readers come back for results
    largest_backlog: int = LARGEST_BACKLOG
    intermediates: bool = True  # joins keep results of their parts where that saves work
    durable: bool = True
    store: str = ""  # an object store's URL: the data directory is a cache of it
    base_folder: Path = field(default_factory=Path.cwd)  # where relative paths start
    allowed: AllowedFolders = ANYWHERE  # where sources and sinks may be

    def __post_init__(self) -> None:
        for name in ("tick_rows", "retained_ticks", "largest_backlog"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is 1 or more")
        if self.tick_interval_s < 0:
            raise ValueError("tick_interval_s is 0 or more")
