"""Pathway's rows beside the engine's; where it is not installed, how that is told."""

from itertools import islice
from pathlib import Path

import pytest

from bench import auctions
from bench.standing import Standing, draw
from bench.systems import pathway, shared
from bench.systems.elsewhere import interpreter
from bench.systems.expert import Constants
from bench.systems.outcome import Unable
from thalweg.engine.shared.tick.executors import InProcess


def is_there() -> bool:
    try:
        interpreter("Pathway", pathway.INTERPRETER)
    except Unable:
        return False
    return True


@pytest.mark.skipif(not is_there(), reason="no Pathway: `make pathway` installs it")
def test_one_dataflow_says_what_the_engine_says(tmp_path: Path):
    for number, batch in enumerate(islice(auctions.batches(600, 7, 4), 3)):
        auctions.write_parquet(batch, number, tmp_path / "parquet")
        auctions.append_csv(batch, 2, tmp_path / "csv")
    queries = draw(12, 1.0, 0.3, (1, 2, 4), 7)
    files = auctions.parquet_files(tmp_path / "parquet")
    ours = shared.run(queries, files, InProcess(), tmp_path / "ours")
    (tmp_path / "theirs").mkdir()
    theirs = pathway.run(queries, tmp_path / "csv", 2, tmp_path / "theirs", 300.0)
    assert theirs.said.equals(ours.said)
    assert theirs.said["rows"].sum() > 100


def test_without_pathway_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv(pathway.INTERPRETER, str(tmp_path / "none"))
    with pytest.raises(Unable, match="make pathway"):
        interpreter("Pathway", pathway.INTERPRETER)


def test_constants_of_a_few_shapes_are_tables():
    found = Constants(draw(6, 1.0, 0.1, (1, 2), 7))
    assert [len(t) for t in (found.joins, found.ranges, found.sellers)] == [2, 2, 2]
    assert [window for *_, window in found.joins] == [1_000, 2_000]
    assert found.bin == pytest.approx(100.0)


def test_a_shape_of_its_own_is_not_written_by_hand():
    with pytest.raises(Unable, match="few shapes"):
        Constants([Standing("q0", 1, ("(O.price + O.itemID) >= O.sellerID",))])
