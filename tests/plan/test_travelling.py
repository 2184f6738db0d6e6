"""Plans as bytes, and back."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.case_files import all_cases
from tests.conformance.runner import prepare
from tests.drawn import examples

from thalweg.plan.catalog import StreamDef
from thalweg.plan.encoding import EncodingError
from thalweg.plan.nodes import base_streams
from thalweg.plan.travelling import (
    VERSION,
    decode_plan,
    encode_plan,
    plan_of_text,
    plan_text,
    rebound,
)

PLANS = [q.plan for case in all_cases()[::3] for q in prepare(case).queries]


def test_a_plan_comes_back_as_it_was() -> None:
    for plan in PLANS:
        assert decode_plan(encode_plan(plan)) == plan
        assert plan_of_text(plan_text(plan)) == plan


def test_who_reads_a_plan_puts_its_own_streams_in() -> None:
    plan = PLANS[0]
    own = {s.name: s for s in base_streams(plan)}
    assert rebound(plan, own.get) == plan
    with pytest.raises(EncodingError, match="no such stream"):
        rebound(plan, lambda _: None)
    other = {n: StreamDef(n, s.fields[:0], s.timestamp, s.timestamp_type) for n, s in own.items()}
    with pytest.raises(EncodingError, match="another"):
        rebound(plan, other.get)


def test_another_version_is_told() -> None:
    with pytest.raises(EncodingError, match=f"version {VERSION + 1}"):
        decode_plan(msgspec.msgpack.encode([VERSION + 1, {}]))


@settings(max_examples=examples(100))
@given(st.sampled_from(PLANS), st.data())
def test_bytes_that_are_no_plan_are_refused(plan: object, data: st.DataObject) -> None:
    packed = bytearray(encode_plan(plan))  # type: ignore[arg-type]
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(EncodingError):
        decode_plan(bytes(packed))
