"""Opens a site: Spark or this process to run its ticks, and sources by their registry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from thalweg.engine.shared.executors import Executor, InProcess
from thalweg.engine.site.scripts import Compiler
from thalweg.engine.site.settings import SiteSettings
from thalweg.engine.site.site import Site
from thalweg.engine.sources.feed import Source
from thalweg.plan.catalog import StreamDef

IN_PROCESS = "in-process"  # a master that is none: ticks run in this process, without Spark


def open_site(
    folder: Path,
    compiler: Compiler,
    *,
    master: str = "local[*]",
    settings: SiteSettings | None = None,
    spark_settings: dict[str, str] | None = None,
) -> Site:
    """Open a data directory and go on where it was left."""
    if master == IN_PROCESS:
        return Site(folder, compiler, InProcess(), open_source=_opener(None), settings=settings)
    # Spark takes a second to import: whoever does without it does not pay for it.
    from thalweg.engine.session import spark_session
    from thalweg.engine.shared.executors import OnSpark

    spark = spark_session(master, **(spark_settings or {}))
    try:
        executor: Executor = OnSpark(spark.sparkContext)
        return Site(
            folder,
            compiler,
            executor,
            open_source=_opener(spark),
            settings=settings,
            on_close=spark.stop,
        )
    except BaseException:
        spark.stop()
        raise


def _opener(spark: object) -> Callable[[StreamDef, Path], Source]:
    def opener(stream: StreamDef, folder: Path) -> Source:
        from thalweg.engine.sources.registry import open_source

        return open_source(stream, spark, folder)

    return opener
