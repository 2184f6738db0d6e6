"""Tuples that tasks land are those that a push lands, to the row; or nothing is listed."""

from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

from thalweg.cql import compile_script
from thalweg.engine.shared.ingest.landing import Landing
from thalweg.engine.shared.ingest.task_landing import Moved, TaskLanding, Written
from thalweg.engine.shared.ingest.waiting import waiting
from thalweg.engine.shared.state.store import Store

(S,) = compile_script(
    "CREATE STREAM S (a INTEGER, b VARCHAR) TIMESTAMP BY ts LATENESS 5;"
).catalog.streams()


class Here:
    def __init__(self, folder: Path) -> None:
        self.store = Store(folder, durable=False)
        self.landing = Landing(self.store)

    def take(self, partition: int, batches: list[pl.DataFrame], resume: bytes = b"") -> None:
        self.landing.take(S, [self.written(partition, batches, resume)])

    def written(self, partition: int, batches: list[pl.DataFrame], resume: bytes = b"") -> Written:
        place = self.landing.place(S, partition)
        task = TaskLanding(S, self.landing.folder, partition, place)
        for batch in batches:
            task.take(batch)
        report = msgspec.msgpack.encode(task.close())
        return msgspec.structs.replace(msgspec.msgpack.decode(report, type=Written), resume=resume)

    def everything(self) -> dict[str, object]:
        landed = [x for _, x in self.store.inputs.landed()]
        frames = [frame.filter(pl.col("_ts") >= x.floor) for _, x, frame in waiting(self.store)]
        aside = {
            p.parent.name: p.read_text()
            for p in sorted(self.store.folder.glob("*/*.jsonl"))
            if p.parent.name in ("late", "rejects")
        }
        return {
            "rows": pl.concat(frames).rows() if frames else [],
            "landed": [x[:4] for x in landed if x.rows],
            "partitions": self.store.inputs.partitions(),
            "aside": aside,
        }


def drawn(seed: int, batches: int = 4) -> list[pl.DataFrame]:
    """Late tuples, and values that do not fit."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(batches):
        stamps = (10 * number + random.integers(-9, 20, 30)).tolist()
        numbers = [str(n) if n else "none" for n in random.integers(0, 8, 30)]
        made.append(pl.DataFrame({"ts": stamps, "a": numbers, "b": [f"é{n}\n" for n in numbers]}))
    return made


@pytest.mark.parametrize("seed", range(8))
def test_tasks_land_what_pushes_land(tmp_path, seed):
    pushed, taken = Here(tmp_path / "pushed"), Here(tmp_path / "taken")
    for here in (pushed, taken):
        here.store.inputs.raise_floors({"S": seed})
    for partition in (0, 3):
        for round_ in range(2):
            batches = drawn(100 * seed + 10 * partition + round_)
            for batch in batches:
                pushed.landing.push(S, batch, partition=partition)
            taken.take(partition, batches)
    found = taken.everything()
    assert found == pushed.everything()
    assert len(found["rows"]) > 50
    assert set(found["aside"]) == {"late", "rejects"}
    files = {x.section.file for _, x in taken.store.inputs.landed() if x.section is not None}
    assert {p.name for p in taken.landing.folder.here.iterdir()} == files  # no line is left behind


def test_a_floor_that_rose_meanwhile_makes_the_task_do_it_again(tmp_path):
    here = Here(tmp_path)
    batches = drawn(1)
    written = here.written(0, batches, b"7")
    here.store.inputs.raise_floors({"S": 12})
    with pytest.raises(Moved):
        here.landing.take(S, [written])
    assert here.everything()["rows"] == []
    assert here.landing.resume_point(S) is None
    assert not list(here.landing.folder.here.iterdir())
    here.take(0, batches, b"7")
    assert min(row[-2] for row in here.everything()["rows"]) >= 12
    assert here.landing.resume_point(S) == b"7"


def test_a_floor_below_all_that_was_accepted_changes_nothing(tmp_path):
    here = Here(tmp_path)
    written = here.written(0, [pl.DataFrame({"ts": [20, 21], "a": [1, 2], "b": ["x", "y"]})])
    here.store.inputs.raise_floors({"S": 20})
    here.landing.take(S, [written])
    assert len(here.everything()["rows"]) == 2


def test_what_was_listed_once_is_not_listed_again(tmp_path):
    """Two tasks have read the same range: a second attempt, or a source that was thought dead."""
    here = Here(tmp_path)
    first, second = (here.written(0, drawn(2), b"9") for _ in range(2))
    here.landing.take(S, [first])
    before = here.everything()
    with pytest.raises(Moved):
        here.landing.take(S, [second])
    assert here.everything() == before


def test_all_partitions_or_none(tmp_path):
    here = Here(tmp_path)
    good, bad = here.written(0, drawn(3)), here.written(1, drawn(4))
    here.landing.push(S, drawn(5)[0], partition=1)
    before = here.everything()
    with pytest.raises(Moved):
        here.landing.take(S, [good, bad])
    assert here.everything() == before


def test_where_a_source_goes_on_is_known_without_a_tuple(tmp_path):
    here = Here(tmp_path)
    place = here.landing.place(S, 2)
    told = ['{"row": null, "reason": "gone"}']
    here.landing.take(S, [Written(2, place, newest=place.newest, resume=b"5", told=told)])
    assert here.landing.resume_point(S, 2) == b"5"
    assert here.everything()["aside"] == {"rejects": told[0] + "\n"}
    assert here.store.inputs.all_set_aside() == {("S", "rejected"): 1}
