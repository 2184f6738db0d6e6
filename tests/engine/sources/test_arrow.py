"""Arrow from outside: encodings are the type that they encode, and buffers that contradict each
other are refused before a kernel reads them (some end the process)."""

import pyarrow as pa
import pytest

from thalweg.engine.sources.arrow import frame_of_arrow

TEXTS = pa.array(["a", "b", "c"])
NUMBERS = pa.array([1, 2, 3])


def texts(offsets: list[int], data: bytes) -> pa.Array:
    buffers = [None, pa.array(offsets, pa.int32()).buffers()[1], pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def runs(ends: list[int], values: pa.Array, length: int = 3) -> pa.Array:
    kind = pa.run_end_encoded(pa.int32(), values.type)
    return pa.Array.from_buffers(
        kind, length, [None], children=[pa.array(ends, pa.int32()), values]
    )


def dictionary(indices: list[int], values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), values, safe=False)


@pytest.mark.parametrize("values", [TEXTS, NUMBERS], ids=["texts", "numbers"])
@pytest.mark.parametrize("ends", [[5, 3, 100], [-1, 2, 3], [1, 1, 3], [0, 0, 3], [10**9, 2, 3]])
def test_runs_that_contradict_each_other_are_refused(ends: list[int], values: pa.Array) -> None:
    with pytest.raises(pa.ArrowInvalid):
        frame_of_arrow(pa.table({"x": runs(ends, values)}))


@pytest.mark.parametrize(
    "column",
    [
        dictionary([0, 99, -3], TEXTS),
        texts([0, 10**9, 1, 2], b"ab"),
        runs([1, 2, 3], texts([0, 10**9, 1, 2], b"ab")),
        dictionary([0, 1, 2], texts([0, 10**9, 1, 2], b"ab")),
    ],
    ids=["indices", "offsets", "offsets of runs", "offsets of a dictionary"],
)
def test_what_points_outside_of_its_buffers_is_refused(column: pa.Array) -> None:
    with pytest.raises(pa.ArrowInvalid):
        frame_of_arrow(pa.table({"x": column}))


@pytest.mark.parametrize(
    "column",
    [
        runs([1, 2, 3], texts([0, 1, 2, 2], b"a\xff")),
        dictionary([0, 1, 2], texts([0, 1, 2, 2], b"a\xff")),
    ],
    ids=["runs", "dictionary"],
)
def test_a_text_that_is_not_utf_8_refuses_its_row_alone(column: pa.Array) -> None:
    frame = frame_of_arrow(pa.table({"x": column}))
    assert frame["x"].to_list() == ["a", None, ""]
    assert frame["_refused"].to_list() == [None, "x: '\\xff' is not UTF-8", None]


def test_encodings_are_the_type_that_they_encode() -> None:
    columns = {"r": runs([1, 2, 3], NUMBERS), "d": dictionary([2, 0, 0], TEXTS)}
    assert frame_of_arrow(pa.table(columns)).rows() == [(1, "c"), (2, "a"), (3, "a")]
