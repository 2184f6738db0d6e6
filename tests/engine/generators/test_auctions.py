import numpy as np
import pyarrow as pa
import pytest

from thalweg.engine.generators.auctions import Auctions, AuctionSettings
from thalweg.plan.types import BIGINT

HOUR_MS = 3_600_000


def _columns(stream: str, **settings: object) -> dict[str, np.ndarray]:
    chosen = AuctionSettings(**{"seed": 3, "rate": 200.0, "timestamps": BIGINT, **settings})
    table = pa.Table.from_batches(Auctions(chosen).batches(stream))
    return {name: table[name].to_numpy() for name in table.column_names}


@pytest.fixture(scope="module")
def openings() -> dict[str, np.ndarray]:
    return _columns("OpenAuction", limit=500_000)


@pytest.fixture(scope="module")
def closings() -> dict[str, np.ndarray]:
    return _columns("ClosedAuction", limit=300_000)


def _durations(openings, closings) -> np.ndarray:
    return closings["timestamp"] - openings["timestamp"][closings["itemID"]]


def test_item_opens_once_and_closes_once(openings, closings):
    assert len(np.unique(openings["itemID"])) == len(openings["itemID"])
    assert len(np.unique(closings["itemID"])) == len(closings["itemID"])


def test_every_item_closes_in_its_time(openings, closings):
    # All that opened four medians before the last closing must have closed by then.
    old = openings["timestamp"] < closings["timestamp"][-1] - 8 * HOUR_MS
    assert np.isin(openings["itemID"][old], closings["itemID"]).all()


def test_durations_tell_three_hour_windows_from_five_hour_windows(openings, closings):
    early = closings["itemID"] < 100_000  # later items are here only if they closed soon
    hours = _durations(openings, closings)[early] / HOUR_MS
    assert hours.min() >= 0.5
    assert hours.max() <= 8
    assert np.median(hours) == pytest.approx(2, rel=0.03)
    assert np.mean(hours <= 3) == pytest.approx(0.75, abs=0.02)
    assert np.mean(hours <= 5) == pytest.approx(0.94, abs=0.02)


def test_duration_scales_with_its_option():
    openings = _columns("OpenAuction", limit=50_000, duration=60.0)
    closings = _columns("ClosedAuction", limit=30_000, duration=60.0)
    early = closings["itemID"] < 20_000
    assert np.median(_durations(openings, closings)[early]) == pytest.approx(60_000, rel=0.05)


def test_bids_are_for_open_items_at_or_above_the_start_price(openings):
    bids = _columns("Bid", limit=1_000_000)
    items = bids["itemID"]
    closings = _columns("ClosedAuction", limit=300_000)
    closed_at = np.full(len(openings["itemID"]), np.iinfo(np.int64).max)
    closed_at[closings["itemID"]] = closings["timestamp"]
    assert np.all(openings["timestamp"][items] <= bids["timestamp"])
    assert np.all(bids["timestamp"] <= closed_at[items])
    assert np.all(bids["price"] >= openings["start_price"][items])


def test_skew_makes_items_and_bidders_hot():
    def top_share(skew: float, column: str) -> float:
        values = _columns("Bid", limit=500_000, skew=skew)[column]
        counts = np.sort(np.bincount(values))[::-1]
        return counts[: len(counts) // 100 + 1].sum() / len(values)

    for column in ("itemID", "bidderID"):
        assert top_share(1.1, column) > 2 * top_share(0.0, column)


def test_sellers_bidders_and_buyers_have_registered_before(openings, closings):
    registered = _columns("Person", limit=200_000)["timestamp"]
    for stream, who in ((openings, "sellerID"), (closings, "buyerID")):
        known = stream[who] < len(registered)
        assert np.all(registered[stream[who][known]] <= stream["timestamp"][known])
        assert known.all()


def test_prices_are_cents_from_1_to_1000(openings):
    prices = openings["start_price"]
    assert prices.min() >= 1
    assert prices.max() <= 1000
    assert np.array_equal(prices, np.round(prices, 2))
