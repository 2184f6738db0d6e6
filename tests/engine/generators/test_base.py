"""What every stream of every generator promises."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from thalweg.engine.generators import GENERATORS, GeneratorError, make_generator
from thalweg.engine.generators.base import ARROW_TYPES, BLOCK_ROWS
from thalweg.plan.types import BIGINT

STREAMS = [(kind.name, stream) for kind in GENERATORS for stream in kind.fields]
ROWS = 2 * BLOCK_ROWS + 1000  # more than two blocks, and not a whole number of them
DISORDER = {"out_of_order": "0.2", "max_delay": "5000"}

every_stream = pytest.mark.parametrize(("name", "stream"), STREAMS)


def _table(name: str, stream: str, rows: int = ROWS, start: int = 0, **options: str) -> pa.Table:
    generator = make_generator(name, {"seed": "7", "limit": str(ROWS), **options})
    batches = generator.batches(stream, rows, start)
    return pa.Table.from_batches(batches, generator.schema(stream)).combine_chunks()


def _stamps(name: str, stream: str, **options: str) -> np.ndarray:
    table = _table(name, stream, timestamps="BIGINT", **options)
    return table.column(table.num_columns - 1).to_numpy()


@every_stream
def test_batches_have_the_size_asked_for_and_the_limit_ends_the_stream(name, stream):
    generator = make_generator(name, {"limit": "2500"})
    assert [b.num_rows for b in generator.batches(stream, 1000)] == [1000, 1000, 500]


@every_stream
def test_batch_size_does_not_change_the_rows(name, stream):
    assert _table(name, stream, 777, **DISORDER) == _table(name, stream, 100_000, **DISORDER)


@every_stream
@pytest.mark.parametrize("start", [1, 65_535, 65_536, 100_001, ROWS - 1, ROWS, ROWS + 1])
def test_stream_resumes_at_any_tuple(name, stream, start):
    whole = _table(name, stream, **DISORDER)
    assert _table(name, stream, start=start, **DISORDER) == whole.slice(start)


@every_stream
def test_seed_decides_everything(name, stream):
    table = _table(name, stream)
    assert _table(name, stream) == table
    assert _table(name, stream, seed="8") != table


@every_stream
def test_columns_have_the_types_of_their_definition(name, stream):
    generator = make_generator(name, {"limit": "10"})
    definition = generator.stream(stream)
    batch = next(generator.batches(stream))
    assert [(f.name, ARROW_TYPES[f.type]) for f in definition.fields] == [
        (f.name, f.type) for f in batch.schema
    ]
    assert definition.timestamp_index == len(definition.fields) - 1


@every_stream
def test_tuples_arrive_in_order_of_their_timestamps(name, stream):
    assert np.all(np.diff(_stamps(name, stream)) >= 0)


@every_stream
def test_disorder_delays_the_set_share_within_the_declared_lateness(name, stream):
    # Slow enough that a delay of five seconds never reaches across a whole block.
    stamps = _stamps(name, stream, rate="1000", **DISORDER)
    behind = np.maximum.accumulate(stamps) - stamps
    generator = make_generator(name, DISORDER)
    assert behind.max() <= generator.stream(stream).lateness == 5000
    assert behind.max() > 3000
    assert 0.1 < np.mean(behind > 0) <= 0.25


@every_stream
def test_disorder_changes_the_order_of_arrival_and_nothing_else(name, stream):
    keys = [(f.name, "ascending") for f in make_generator(name).stream(stream).fields[::-1]]
    # The last tuples of the limit may differ, so compare whole blocks, which disorder keeps.
    calm = _table(name, stream, limit=str(BLOCK_ROWS))
    stirred = _table(name, stream, limit=str(BLOCK_ROWS), **DISORDER)
    assert calm != stirred
    if stream != "ClosedAuction":  # whose parts are slices of time, not numbers of rows
        assert calm.sort_by(keys) == stirred.sort_by(keys)


@every_stream
def test_rate_is_events_of_the_whole_world_per_second_of_application_time(name, stream):
    kind = type(make_generator(name))
    options = {"rate": "5000", "duration": "1"} if name == "auctions" else {"rate": "5000"}
    shares = {"OpenAuction": 3 / 50, "ClosedAuction": 3 / 50, "Bid": 46 / 50, "Person": 1 / 50}
    share = shares.get(stream, 1 / len(kind.fields))
    stamps = _stamps(name, stream, **options)
    seconds = (stamps[-1] - stamps[0]) / 1000
    assert len(stamps) / seconds == pytest.approx(5000 * share, rel=0.02)


@every_stream
def test_timestamps_are_the_same_instants_in_both_types(name, stream):
    table = _table(name, stream, limit="100")
    micros = table.column(table.num_columns - 1).cast(pa.int64()).to_numpy()
    assert np.array_equal(micros, _stamps(name, stream, limit="100") * 1000)
    definition = make_generator(name, {"timestamps": "BIGINT"}).stream(stream)
    assert definition.timestamp_type == definition.fields[-1].type == BIGINT


def test_stream_without_a_limit_goes_on():
    generator = make_generator("sensors")
    batches = itertools.islice(generator.batches("Reading", 50_000), 5)
    assert sum(b.num_rows for b in batches) == 250_000


def test_unknown_stream_is_named_with_a_suggestion():
    with pytest.raises(GeneratorError, match="auctions has no stream Bids; did you mean Bid"):
        make_generator("auctions").batches("Bids")


@pytest.mark.parametrize(("rows", "start"), [(0, 0), (1, -1)])
def test_senseless_batches_are_refused(rows, start):
    with pytest.raises(GeneratorError, match="one row or more"):
        make_generator("sensors").batches("Reading", rows, start)
