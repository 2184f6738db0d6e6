from pathlib import Path

import pytest
from tests.engine.sources.landings import Landed, stream_of

from thalweg.engine.generators import make_generator
from thalweg.engine.sources import SourceError, open_source
from thalweg.engine.sources.feed import Stopped
from thalweg.engine.sources.generator import GeneratorSource

COLUMNS = "(itemID BIGINT, bidderID BIGINT, price DOUBLE, timestamp TIMESTAMP)"


def bids(**options: object):
    given = ", ".join(f"{name} '{value}'" for name, value in options.items())
    return stream_of(
        f"CREATE STREAM Bid {COLUMNS} TIMESTAMP BY timestamp FROM 'generator:auctions/Bid'"
        + (f" OPTIONS ({given})" if given else "")
    )


def drawn(limit: int, **options: str) -> list[tuple]:
    generator = make_generator("auctions", {"limit": str(limit), **options})
    batches = generator.batches("Bid")
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def test_a_limited_stream_is_replayed_as_it_was_drawn(tmp_path: Path):
    stream = bids(limit=5000, seed=7)
    taken = Landed(tmp_path, stream).run(open_source(stream, None, tmp_path, live=False))
    assert taken.rows == drawn(5000, seed="7")
    assert taken.is_finished


def test_after_a_restart_it_goes_on_with_the_next_tuple(tmp_path: Path):
    stream = bids(limit=5000)
    source = GeneratorSource(
        make_generator("auctions", {"limit": "5000"}), "Bid", rows_per_batch=700
    )
    first = Landed(tmp_path, stream, largest_backlog=2000)

    def stop_when_full(_: float) -> bool:
        first.stop.set()
        return True

    first.feed.wait = stop_when_full
    with pytest.raises(Stopped):
        first.run(source)
    assert len(first.rows) == 2100
    first.close()
    again = Landed(tmp_path, stream).run(source)
    assert again.rows == drawn(5000)


class Clock:
    """A wall clock that moves when somebody waits."""

    def __init__(self, taken: Landed) -> None:
        self.now = 1000.0
        self.most = float("inf")
        self._taken = taken
        taken.feed.wait = self.wait

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        if self.now > self.most:
            self._taken.stop.set()
        return self._taken.stop.is_set()


def paced(clock: Clock, speed: float) -> GeneratorSource:
    generator = make_generator("auctions", {"rate": "100"})
    return GeneratorSource(generator, "Bid", speed=speed, clock=clock)


def test_a_live_stream_keeps_the_pace_of_the_clock(tmp_path: Path):
    taken = Landed(tmp_path, bids())
    clock = Clock(taken)
    clock.most = 1010.0
    taken.run(paced(clock, speed=2.0))
    elapsed_ms = taken.stamps[-1] - make_generator("auctions").settings.begin
    assert 19_700 < elapsed_ms <= 20_000  # ten seconds, twice as fast
    assert len(taken.rows) == pytest.approx(20 * 100 * 46 / 50, rel=0.01)


def test_after_a_restart_what_happened_meanwhile_comes_at_once(tmp_path: Path):
    first = Landed(tmp_path, bids())
    clock = Clock(first)
    clock.most = 1001.05
    first.run(paced(clock, speed=1.0))
    count = len(first.rows)
    first.close()
    again = Landed(tmp_path, bids())
    later = Clock(again)
    later.now = later.most = 1005.0
    again.run(paced(later, speed=1.0))
    assert count == pytest.approx(92, abs=3)
    assert again.rows == drawn(len(again.rows), rate="100")
    assert len(again.rows) == pytest.approx(460, abs=3)


def test_a_stream_in_which_nothing_happens_yet_promises_so(tmp_path: Path):
    """The first auction closes after half an hour: joins with it must not wait until then."""
    stream = stream_of(
        "CREATE STREAM ClosedAuction (itemID BIGINT) TIMESTAMP BY timestamp TIMESTAMP"
        " FROM 'generator:auctions/ClosedAuction'"
    )
    taken = Landed(tmp_path, stream)
    clock = Clock(taken)
    clock.most = 1010.0
    generator = make_generator("auctions", {"rate": "100"})
    taken.run(GeneratorSource(generator, "ClosedAuction", speed=1.0, clock=clock))
    taken.engine.tick()
    assert taken.rows == []
    reached = taken.engine.watermark("ClosedAuction") - generator.settings.begin
    assert 8_000 < reached <= 10_000


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            f"CREATE STREAM B {COLUMNS} TIMESTAMP BY timestamp FROM 'generator:auctions/Bid'",
            r"B never ends, so it can't be replayed: bound it with OPTIONS \(limit",
        ),
        (
            f"CREATE STREAM B {COLUMNS} TIMESTAMP BY timestamp FROM 'generator:auction/Bid'",
            "B: there is no generator auction; did you mean auctions?",
        ),
        (
            f"CREATE STREAM B {COLUMNS} TIMESTAMP BY timestamp FROM 'generator:auctions/Bid'"
            " OPTIONS (sped '2')",
            "B: there is no option sped; did you mean seed?",
        ),
        (
            "CREATE STREAM B (item BIGINT) TIMESTAMP BY timestamp FROM 'generator:auctions/Bid'",
            "B: auctions/Bid has no column item; did you mean itemID?",
        ),
        (
            "CREATE STREAM B (item BIGINT) TIMESTAMP BY t FROM 'push:'",
            "B has no recorded source to replay",
        ),
        (
            "CREATE STREAM B (item BIGINT) TIMESTAMP BY t FROM 'generators:auctions/Bid'",
            "B: there is no source generators:; did you mean generator:?",
        ),
    ],
)
def test_what_cannot_be_replayed_is_refused_with_the_way_out(statement, message, tmp_path: Path):
    with pytest.raises(SourceError, match=message.replace("?", r"\?")):
        open_source(stream_of(statement), None, tmp_path, live=False)
