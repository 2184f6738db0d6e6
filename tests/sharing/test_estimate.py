"""Estimated rates against counted ones, on streams that are as the estimate supposes."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from tests.sharing.decidable import normal

from thalweg.cql import compile_script
from thalweg.sharing.core import Core
from thalweg.sharing.estimate import Statistics, rows_per_s, share_of

CATALOG = compile_script("""
CREATE STREAM S (k INTEGER, v INTEGER, t VARCHAR) TIMESTAMP BY ts BIGINT RESOLUTION 1 second;
CREATE STREAM U (k INTEGER, w INTEGER) TIMESTAMP BY ts BIGINT RESOLUTION 1 second;
""").catalog
SPANS = {("S", "v"): (0, 100), ("U", "w"): (0, 100)}
KEYS = 20


def core(text: str) -> Core:
    return normal(compile_script(f"{text};", CATALOG).queries[0].plan).core


def counted_rows_per_s(seconds: int, rates: tuple[int, int], lengths: tuple[int, int]) -> float:
    """Rows of S [Range a] ⋈ U [Range b] on k where S.v < 50, counted tuple by tuple."""
    draw = random.Random(7)
    window: list[dict[int, Counter[int]]] = [{}, {}]
    rows = 0
    for now in range(seconds):
        new: list[Counter[int]] = [Counter(), Counter()]
        for side in (0, 1):
            for _ in range(rates[side]):
                key, value = draw.randrange(KEYS), draw.randint(0, 100)
                if side == 1 or value <= 50:
                    new[side][key] += 1
            window[side][now] = new[side]
            window[side].pop(now - lengths[side] - 1, None)
        held = [sum(w.values(), Counter()) for w in window]
        for k in range(KEYS):
            rows += new[0][k] * held[1][k] + new[1][k] * (held[0][k] - new[0][k])
    return rows / seconds


def test_the_rate_of_a_join_is_as_counted() -> None:
    query = core("SELECT S.k FROM S [Range 9], U [Range 4] WHERE S.k = U.k AND S.v <= 50")
    statistics = Statistics({"S": 10, "U": 6}, SPANS, {query.signature: 1 / KEYS})
    counted = counted_rows_per_s(400, (10, 6), (9, 4))
    assert rows_per_s(query, statistics) == pytest.approx(counted, rel=0.05)


def test_tuples_of_one_instant_meet_once() -> None:
    query = core("SELECT S.k FROM S [Now], U [Now] WHERE S.k = U.k")
    statistics = Statistics({"S": 10, "U": 6}, {}, {query.signature: 1 / KEYS})
    assert rows_per_s(query, statistics) == pytest.approx(10 * 6 / KEYS)


def test_a_filter_keeps_its_share_of_the_columns_span() -> None:
    statistics = Statistics({"S": 100}, SPANS)

    def rate(where: str) -> float:
        return rows_per_s(core(f"SELECT k FROM S [Range 5] WHERE {where}"), statistics)

    assert rate("v >= 50") == pytest.approx(50)
    assert rate("v BETWEEN 20 AND 30") == pytest.approx(10)
    assert rate("v > 100") == 0
    assert rate("v > 10 AND v < 5") == 0
    assert rate("v = 3") == pytest.approx(10)
    assert rate("t LIKE 'a%'") == pytest.approx(100 / 3)
    assert rate("k < 3") == pytest.approx(100 / 3)


def test_a_longer_window_or_wider_range_never_makes_fewer_rows() -> None:
    statistics = Statistics({"S": 10, "U": 6}, SPANS)
    rates = [
        rows_per_s(core(f"SELECT S.k FROM S {w}, U [Now] WHERE S.k = U.k AND w <= {c}"), statistics)
        for w, c in (("[Now]", 10), ("[Range 1]", 10), ("[Range 1]", 20), ("", 20))
    ]
    assert rates == sorted(rates)
    assert len(set(rates)) == len(rates)


def test_text_has_no_span() -> None:
    query = core("SELECT k FROM S WHERE t > 'a'")
    ((expr, values),) = query.ranges
    statistics = Statistics({"S": 1}, {("S", "t"): ("a", "z")})
    assert share_of(expr, values, query, statistics) == pytest.approx(1 / 3)
