"""When members of a group go, nothing is computed for them any longer; the others don't notice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import cycle, product
from pathlib import Path

import polars as pl
import pytest
from tests.drawn import some
from tests.engine.shared.adapter import WAYS
from tests.engine.shared.sharing_workloads import FORMS, KINDS, TOPS
from tests.engine.shared.test_sharing import RANGES, SLIDING, alike, run

from thalweg.cql import compile_script
from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.groups import regrouping
from thalweg.engine.shared.groups import running_group as groups
from thalweg.engine.shared.groups.cost_model import Sharing
from thalweg.engine.shared.groups.regroup_actions import RegroupActions, tighter
from thalweg.engine.shared.groups.running_group import RunningGroup
from thalweg.sharing.core import NormalQuery
from thalweg.sharing.normal import normalise
from thalweg.sharing.representative import representative

STREAM = "CREATE STREAM S (k INTEGER, v INTEGER) TIMESTAMP BY at BIGINT;"


class Site:
    """An engine with one stream, and ticks of so many tuples, an instant each."""

    def __init__(self, folder: Path, sharing: Sharing, tuples_per_tick: int = 10) -> None:
        self.catalog = compile_script(STREAM).catalog
        self.engine = SharedEngine(folder, durable=False, sharing=sharing)
        for stream in self.catalog.streams():
            self.engine.add_stream(stream)
        self.tuples_per_tick = tuples_per_tick
        self.instant = 0

    def submit(self, **texts: str) -> None:
        script = "".join(f"CREATE QUERY {name} AS {text};" for name, text in texts.items())
        self.engine.add_queries(compile_script(script, self.catalog).queries)

    def drop(self, *names: str) -> None:
        for name in names:
            self.engine.drop_query(name)

    def run(self, ticks: int) -> None:
        for _ in range(ticks):
            self.instant += 1
            values = list(range(self.tuples_per_tick))
            rows = {"k": values, "v": values, "at": [self.instant] * len(values)}
            self.engine.push("S", pl.DataFrame(rows))
            self.engine.run_to_end()

    def only_group(self) -> RunningGroup:
        (generation,) = self.engine.roster.groups.values()
        return generation

    def is_tight(self) -> bool:
        members = self.engine.roster.queries.values()
        wanted = representative(m.normal.core for m in members if m.normal is not None)
        return self.only_group().representative == wanted


def _filter(below: int, window: str = "[Range 2]") -> str:
    return f"SELECT k FROM S {window} WHERE v < {below}"


@pytest.mark.parametrize("loosest", [_filter(9), _filter(2, "[Range 8]")])
def test_a_group_is_as_tight_as_its_members_when_the_loosest_has_gone(
    tmp_path: Path, loosest: str
) -> None:
    site = Site(tmp_path, Sharing.WHEREVER_POSSIBLE)
    site.submit(loosest=loosest, a=_filter(2), b=_filter(3))
    site.run(ticks=3)
    before = site.only_group()
    site.drop("loosest")
    site.run(ticks=2)
    assert site.only_group() is not before
    assert site.is_tight()
    again = site.only_group()
    site.run(ticks=3)
    assert site.only_group() is again


def test_a_group_stays_where_others_are_as_loose(tmp_path: Path) -> None:
    site = Site(tmp_path, Sharing.WHEREVER_POSSIBLE)
    site.submit(a=_filter(2), b=_filter(9), c=_filter(9), d=_filter(4))
    site.run(ticks=3)
    before = site.only_group()
    site.drop("b", "d")
    site.run(ticks=3)
    assert site.only_group() is before


@pytest.mark.parametrize(("tuples_per_tick", "is_worth_it"), [(10, False), (100_000, True)])
def test_where_it_pays_means_half_of_the_rows_and_not_few(
    tmp_path: Path, tuples_per_tick: int, is_worth_it: bool
) -> None:
    site = Site(tmp_path, Sharing.WHERE_IT_PAYS, tuples_per_tick)
    few = tuples_per_tick // 10
    site.submit(a=_filter(few), b=_filter(few + 1), loosest=_filter(tuples_per_tick))
    site.run(ticks=4)
    site.drop("loosest")
    site.run(ticks=4)
    assert site.is_tight() == is_worth_it


def test_what_was_loose_when_the_engine_stopped_becomes_tight_after_the_start(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path, Sharing.WHERE_IT_PAYS, 100_000)
    site.submit(a=_filter(2), b=_filter(3), loosest=_filter(100_000))
    site.run(ticks=4)
    site.drop("loosest")
    site.engine.close()
    again = Site(tmp_path, Sharing.WHERE_IT_PAYS, 100_000)
    again.submit(a=_filter(2), b=_filter(3))
    again.instant = site.instant
    again.run(ticks=4)
    assert again.is_tight()


def _count(at_least: int) -> str:
    return f"SELECT COUNT(*) AS n FROM S [Range 2] WHERE v > {at_least}"


@pytest.mark.parametrize("left", [1, 3])
@pytest.mark.parametrize("sharing", [Sharing.WHERE_IT_PAYS, Sharing.WHEREVER_POSSIBLE])
def test_aggregates_are_computed_for_those_who_are_left(
    tmp_path: Path, left: int, sharing: Sharing
) -> None:
    site = Site(tmp_path, sharing)
    site.submit(**{f"q{i}": _count(i) for i in range(6)})
    site.run(ticks=3)
    assert site.only_group().runs_aggregates
    site.drop(*(f"q{i}" for i in range(left, 6)))
    site.run(ticks=5)
    family = site.only_group().family
    assert family is not None
    assert sorted(family.members) == [f"q{i}" for i in range(left)]


def run_leaving() -> None:
    """Five queries that come and go; those whose constants are the loosest go."""
    drawn = some(product((FORMS[1], FORMS[3]), dict.fromkeys(TOPS)), 3)
    turns = zip(drawn, cycle((RANGES, SLIDING)), cycle(KINDS), cycle(WAYS), strict=False)
    for (form, top), windows, kind, way in turns:
        workload = alike(form, top, (0, 0, 1, 0, 6), "", windows, kind)
        life = ((0, 4), (0, 99), (1, 12), (0, 7), (6, 12))
        run(replace(workload, life=life), 1, way, sharing=Sharing.WHEREVER_POSSIBLE, restarts={9})


def test_who_stays_says_what_it_would_say_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Counter[bool] = Counter()
    is_too_loose = RegroupActions.is_too_loose

    def counted(self: RegroupActions, generation: RunningGroup, members: list[Run]) -> bool:
        answer = is_too_loose(self, generation, members)
        found[generation.runs_aggregates] += answer
        return answer

    monkeypatch.setattr(RegroupActions, "is_too_loose", counted)
    run_leaving()
    assert found[True]
    assert found[False]


def test_a_new_home_that_does_not_know_enough_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (groups, regrouping):
        monkeypatch.setattr(module, "knows_enough", lambda *_: True)
    monkeypatch.setattr(RegroupActions, "complete", lambda *_: {"S": 1 << 40, "R": 1 << 40})
    with pytest.raises((AssertionError, KeyError)):
        run_leaving()


def test_few_cores_show_that_a_representative_is_as_loose_as_it_was() -> None:
    texts = [f"CREATE QUERY q{i} AS {_filter(i)};" for i in (3, 9, 1, 4, 2)]
    found = [normalise(q.plan) for q in compile_script(STREAM + "".join(texts)).queries]
    cores = [q.core for q in found if isinstance(q, NormalQuery)]
    wide = representative(cores).to_core()
    assert tighter(cores, wide) is None
    assert tighter(cores[1:], wide) is None
    assert tighter(cores[2:], wide) == representative(cores[2:])
    assert tighter(cores[:1], wide) == representative(cores[:1])
