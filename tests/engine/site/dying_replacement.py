"""A process that replaces a query and is killed at its n-th durable step: `FOLDER N`."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from thalweg.cql import compile_script
from thalweg.engine.shared.state.store import Store
from thalweg.engine.site import IN_PROCESS, open_site
from thalweg.engine.site.settings import SiteSettings

OLD = "CREATE QUERY q AS SELECT a FROM S [Range 100]"
NEW = "CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 100] WHERE a > 15"
STREAM = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts;"


def rows(*stamped: tuple[int, int]) -> pl.DataFrame:
    return pl.DataFrame(stamped, {"ts": pl.Int64, "a": pl.Int64}, orient="row")


def die_at(step: int) -> None:
    """Killed before the n-th transaction that changes something is committed."""
    real, left = Store.transaction, [step]

    @contextmanager
    def transaction(self: Store) -> Iterator[object]:
        is_outer = not self._db.in_transaction
        with real(self) as db:
            before = db.total_changes
            yield db
            if is_outer and db.total_changes > before:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

    Store.transaction = transaction  # type: ignore[method-assign,assignment]


def main(folder: Path, step: int) -> None:
    settings = SiteSettings(tick_interval_s=0.0, base_folder=folder)
    site = open_site(folder / "data", compile_script, master=IN_PROCESS, settings=settings)
    site.execute(STREAM + OLD + "; CREATE SINK w FROM q INTO 'jsonl:out'")
    site.push("S", rows((1, 10), (2, 20), (3, 0)))
    site.settle()
    die_at(step)
    site.execute(NEW)
    site.push("S", rows((5, 50)))
    site.settle()
    site.close()
    sys.stdout.write("survived\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
