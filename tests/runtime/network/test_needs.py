"""What a source says of its needs, while other threads of its node register and drop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from thalweg.cql import compile_placed
from thalweg.engine.site import IN_PROCESS, open_site
from thalweg.engine.site.publications import needs_of
from thalweg.engine.site.settings import SiteSettings


def test_streams_that_come_meanwhile_do_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SiteSettings(durable=False)
    site = open_site(tmp_path, compile_placed, master=IN_PROCESS, settings=settings)
    try:
        site.execute("CREATE STREAM A (t BIGINT) TIMESTAMP BY t")
        site.execute("CREATE STREAM B (t BIGINT) TIMESTAMP BY t")
        engine, cuts = site.engine, site.engine.store.inputs.cuts

        def meanwhile() -> dict[tuple[str, int], int]:
            number = len(engine.streams)
            engine.streams[f"N{number}"] = replace(engine.streams["A"], name=f"N{number}")
            return cuts()

        monkeypatch.setattr(engine.store.inputs, "cuts", meanwhile)
        assert needs_of(site, "A", 7)[1] == 7
        assert needs_of(site, "A")[1] is None
    finally:
        site.close()
