"""Opens a site: Spark or this process to run its ticks, and sources by their registry."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from thalweg.engine.paths import AllowedFolders
from thalweg.engine.shared.tick.executors import InProcess
from thalweg.engine.sinks.registry import open_sink
from thalweg.engine.site.scripts import Compiler
from thalweg.engine.site.settings import SiteSettings
from thalweg.engine.site.site import Site
from thalweg.engine.sources.feed import Source
from thalweg.plan.catalog import StreamDef

IN_PROCESS = "in-process"  # a master that is none: ticks run in this process, without Spark
_LONGEST_WARM_UP_S = 30.0

Schemes = Mapping[str, Callable[[StreamDef], Source]]  # how a source begins, and who opens it
NO_SCHEMES: Schemes = {}
S = TypeVar("S", bound=Site)


def open_site(
    folder: Path,
    compiler: Compiler,
    *,
    master: str = "local[*]",
    settings: SiteSettings | None = None,
    spark_settings: dict[str, str] | None = None,
    schemes: Schemes = NO_SCHEMES,
    kind: type[S] = Site,  # type: ignore[assignment]
) -> S:
    """Open a data directory and go on where it was left. `schemes` open sources of other kinds
    than the registry's."""
    settings = settings or SiteSettings()
    allowed = settings.allowed
    if master == IN_PROCESS:
        return kind(
            folder,
            compiler,
            InProcess(),
            open_source=_opener(None, allowed, schemes),
            open_sink=lambda target, base, options: open_sink(target, base, None, options, allowed),
            settings=settings,
        )
    # Spark takes a second to import: whoever does without it does not pay for it.
    from thalweg.engine.session import spark_session
    from thalweg.engine.shared.tick.executors import OnResidents

    spark = spark_session(master, **(spark_settings or {}))

    def stop() -> None:
        warming.join(_LONGEST_WARM_UP_S)
        executor.close()
        with suppress(Exception):  # it may be gone already
            spark.stop()

    try:
        executor = OnResidents(spark.sparkContext)
        warming = _warm_up(spark, executor.tasks)
        return kind(
            folder,
            compiler,
            executor,
            open_source=_opener(spark, allowed, schemes),
            open_sink=lambda target, base, options: open_sink(
                target, base, spark, options, allowed
            ),
            settings=settings,
            on_close=stop,
        )
    except BaseException:
        spark.stop()
        raise


def _warm_up(spark: Any, workers: int) -> threading.Thread:
    """Have Spark's workers start and import what they need while nobody waits for them yet."""

    def run() -> None:
        with suppress(Exception):  # a tick will tell, if it is worth telling
            spark.sparkContext.parallelize(range(workers), workers).foreachPartition(_import)

    thread = threading.Thread(target=run, name="warm-up", daemon=True)
    thread.start()
    return thread


def _import(_: Iterator[int]) -> None:
    import thalweg.engine.shared.tick.runner  # noqa: F401


def _opener(
    spark: Any, allowed: AllowedFolders, schemes: Schemes
) -> Callable[[StreamDef, Path], Source]:
    def opener(stream: StreamDef, folder: Path) -> Source:
        for scheme, opened in schemes.items():
            if stream.source is not None and stream.source.startswith(scheme):
                return opened(stream)
        from thalweg.engine.sources.registry import open_source

        return open_source(stream, spark, folder, allowed=allowed)

    return opener
