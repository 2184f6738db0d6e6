import pytest

from thalweg.engine.generators.auctions import AuctionSettings
from thalweg.engine.generators.settings import GeneratorError, Settings, parse_settings
from thalweg.plan.types import BIGINT


def test_text_becomes_typed_settings():
    parsed = parse_settings(
        AuctionSettings,
        {"SEED": "7", "rate": "2.5", "limit": "10", "duration": "60", "timestamps": "bigint"},
    )
    assert parsed == AuctionSettings(seed=7, rate=2.5, limit=10, duration=60, timestamps=BIGINT)


@pytest.mark.parametrize("begin", ["1735776000000", "2025-01-02", "2025-01-02T01:00:00+01:00"])
def test_begin_is_milliseconds_or_an_iso_date(begin):
    assert parse_settings(Settings, {"begin": begin}).begin == 1_735_776_000_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sed": "1"}, "no option sed; did you mean seed"),
        ({"zzz": "1"}, r"no option zzz \(there are seed, rate"),
        ({"rate": "fast"}, "rate is a number, not 'fast'"),
        ({"limit": "1.5"}, "limit is a whole number"),
        ({"begin": "yesterday"}, "begin is milliseconds since the epoch or an ISO date"),
        ({"timestamps": "DATE"}, "timestamps is TIMESTAMP or BIGINT"),
        ({"rate": "0"}, "rate is events per second"),
        ({"rate": "inf"}, "rate is events per second"),
        ({"skew": "-1"}, "skew is an exponent"),
        ({"limit": "-1"}, "limit is a number of tuples"),
        ({"out_of_order": "2", "max_delay": "1"}, "a share, 0 to 1"),
        ({"out_of_order": "0.1"}, "out_of_order needs max_delay"),
    ],
)
def test_mistake_is_named_with_what_would_do(options, message):
    with pytest.raises(GeneratorError, match=message):
        parse_settings(Settings, options)
