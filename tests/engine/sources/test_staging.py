from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from thalweg.engine.sources.staging import FILE, LINE, START, stage_pieces

splits = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from([0, 100]), st.integers(0, 9)), max_size=6
)


@given(splits, st.integers(1, 7), st.integers(1, 5))
def test_rows_keep_their_split_and_their_order(tmp_path_factory, found, rows_per_batch, rows):
    """However rows are batched on the way, a split's pieces put together are the split."""
    folder = tmp_path_factory.mktemp("pieces")
    unique = list({(file, start): count for file, start, count in found}.items())
    table = pa.table(
        {
            LINE: [f"{file}{start} {n}" for (file, start), count in unique for n in range(count)],
            FILE: [file for (file, _), count in unique for _ in range(count)],
            START: pa.array([start for (_, start), count in unique for _ in range(count)], "int64"),
        },
        pa.schema([(LINE, pa.string()), (FILE, pa.string()), (START, pa.int64())]),
    )
    batches = table.to_batches(rows_per_batch)
    pieces = [p for b in stage_pieces(str(folder), rows, iter(batches)) for p in b.to_pylist()]
    for (file, start), count in unique:
        own = [p for p in pieces if (p["file"], p["start"]) == (file, start)]
        assert [p["number"] for p in own] == list(range(len(own)))
        texts = [Path(p["path"]).read_text() for p in own]
        assert "".join(texts) == "".join(f"{file}{start} {n}\n" for n in range(count))
        assert all(text.count("\n") <= rows for text in texts)
