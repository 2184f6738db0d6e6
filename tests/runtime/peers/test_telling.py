"""EXPLAIN among peers."""

from thalweg.cql import compile_script
from thalweg.plan.windows import FOREVER
from thalweg.runtime.peers.telling import words

(CLOCKED,) = compile_script("CREATE STREAM C (a BIGINT) TIMESTAMP BY t TIMESTAMP").catalog.streams()
(COUNTED,) = compile_script("CREATE STREAM N (a BIGINT) TIMESTAMP BY t BIGINT").catalog.streams()
STREAMS = {"c": CLOCKED, "n": COUNTED}


def test_instants_are_told_as_their_stream_writes_them():
    assert words(1_500, "N", STREAMS) == "1500"
    assert words(1_500, "C", STREAMS).endswith("00:00:01.500")
    assert words(7, "gone", STREAMS) == "7"


def test_the_end_of_time_is_no_number():
    assert {words(FOREVER, name, STREAMS) for name in ("C", "N", "gone")} == {"the end"}
