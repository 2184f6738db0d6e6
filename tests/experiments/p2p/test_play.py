"""Three ways to join give the same combinations where nothing fails."""

import msgspec
import pytest

from thalweg.experiments.p2p.play import DHTJOIN, GATHERING, RJOIN, Case, play
from thalweg.experiments.p2p.workload import Zipf, arrivals, query
from thalweg.overlay.generator import Generator
from thalweg.overlay.p2p.peer import PeerSettings
from thalweg.overlay.p2p.query import combinations
from thalweg.overlay.p2p.tuples import Tup

NODES = 32


def _case(method, joins, type_2, **changes):
    generator = Generator(5)
    came = list(arrivals(generator, 20, 20, 4, 3, Zipf(12, 0.9)))
    asked = query(
        generator,
        "q",
        "n3",
        joins,
        type_2=type_2,
        streams=4,
        attributes=3,
        window=3_000,
        eager=True,
    )
    return Case(method, NODES, came, [(0, asked)], seed=3, **changes)


@pytest.mark.parametrize(("joins", "type_2"), [(1, False), (2, False), (2, True), (3, True)])
def test_all_ways_give_as_many_results(joins, type_2):
    case = _case(DHTJOIN, joins, type_2)
    asked = case.queries[0][1]
    later = [a for a in case.arrivals if a.at_us > 2_000_000]
    by_stream = {}
    for i, a in enumerate(later):
        tup = Tup(a.stream, "s", i, a.at_us // 1_000, a.values)
        by_stream.setdefault(a.stream, []).append(tup)
    wanted = sum(1 for _ in combinations(asked, by_stream))
    assert wanted > 10
    for method in (DHTJOIN, RJOIN, GATHERING):
        quiet = [a for a in case.arrivals if a.at_us > 2_000_000]
        seen = play(Case(method, NODES, quiet, case.queries, seed=3), keep_ids=True)
        assert seen.results == wanted, method
        assert len(seen.ids) == wanted


def test_exact_results_are_the_same():
    eager = _case(DHTJOIN, 1, False)
    asked = msgspec.structs.replace(eager.queries[0][1], eager=False)
    later = [a for a in eager.arrivals if a.at_us > 6_000_000]
    settings = PeerSettings(buckets=256)
    exact = Case(DHTJOIN, NODES, later, [(0, asked)], 3, settings, settle_s=20.0, sources=2)
    by_stream = {}
    for i, a in enumerate(later):
        by_stream.setdefault(a.stream, []).append(Tup(a.stream, "s", i, a.at_us // 1_000, a.values))
    wanted = sum(1 for _ in combinations(asked, by_stream))
    assert 0.95 * wanted <= play(exact).results <= wanted  # equal rows net at an instant
