import numpy as np
import pyarrow as pa
import pytest

from thalweg.engine.generators.base import BLOCK_ROWS
from thalweg.engine.generators.stocks import SYMBOLS, VOLATILITY, Stocks, StockSettings


@pytest.fixture(scope="module")
def quotes():
    settings = StockSettings(seed=2, rate=1.0, limit=4 * BLOCK_ROWS)
    return pa.Table.from_batches(Stocks(settings).batches("Quote")).to_pandas()


def test_symbols_of_the_thesis_are_quoted_on_their_market(quotes):
    markets = quotes.groupby("name")["market"].unique()
    assert list(markets["GOOGLE"]) == list(markets["Microsoft"]) == ["NasdaqGS"]
    assert set(quotes["market"]) > {"NasdaqGS", "NYSE"}


def test_busy_symbols_quote_more_often(quotes):
    counts = quotes["name"].value_counts()
    assert counts["GOOGLE"] > 3 * counts["Vodafone"]
    assert len(counts) == len(SYMBOLS)


def test_price_is_a_random_walk_without_jumps_between_blocks(quotes):
    google = quotes[quotes["name"] == "GOOGLE"]
    steps = np.diff(np.log(google["price"]))
    seconds = np.diff(google.index)
    scaled = steps / (VOLATILITY * np.sqrt(seconds))
    assert scaled.std() == pytest.approx(1, rel=0.05)
    assert np.abs(scaled).max() < 6
    assert abs(np.corrcoef(scaled[:-1], scaled[1:])[0, 1]) < 0.05


def test_prices_are_positive_cents_and_volumes_round_lots(quotes):
    assert (quotes["price"] > 0).all()
    assert np.array_equal(quotes["price"], quotes["price"].round(2))
    assert (quotes["volume"] % 100 == 0).all()
    assert (quotes["volume"] > 0).all()
