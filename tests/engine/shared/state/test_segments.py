"""What a bundle holds is what was written, and no more."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.segments import BundleWriter, read_section


@pytest.mark.parametrize("kind", [pl.String, pl.Binary])
def test_a_part_of_a_frame_takes_the_room_of_its_rows_only(
    tmp_path: Path, kind: type[pl.DataType]
) -> None:
    text = (pl.lit("x" * 400) + pl.col("k").cast(pl.String)).cast(kind).alias("text")
    frame = pl.DataFrame({"k": pl.int_range(1_000, eager=True)}).with_columns(text)
    folder = Folder(str(tmp_path))
    writer = BundleWriter(folder, "one.arrow")
    parts = [frame.filter(pl.col("k") % 10 == 0), frame.slice(700, 100), frame.clear(), frame]
    sections = [writer.write(part) for part in parts]
    writer.close()
    for part, section in zip(parts, sections, strict=True):
        assert section.size < 450 * part.height + 2_000
        assert read_section(folder, section).equals(part)
