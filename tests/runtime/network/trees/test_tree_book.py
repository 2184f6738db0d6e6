"""Leave to read somebody: whatever becomes of answers, nobody comes to read itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thalweg.runtime.data.messages import Hang
from thalweg.runtime.network.trees.tree_book import Edges, above, after

READERS = ("a", "b", "c", "d", "e")


def hang(reader: str, publishers: tuple[str, ...], to: str | None) -> Hang:
    return Hang("S", reader, 1, publishers, {}, 0.0, 0.0, to)


def test_leave_is_refused_where_a_way_leads_back() -> None:
    known: Edges = {}
    for reader, to in (("a", "b"), ("b", "c")):
        known, granted = after(known, hang(reader, ("home",), to))
        assert granted
    known, granted = after(known, hang("c", ("home",), "a"))
    assert not granted
    known, granted = after(known, hang("a", ("home",), None))  # it has stayed where it was
    _, granted = after(known, hang("c", ("home",), "a"))
    assert granted


@given(st.data())
def test_nobody_reads_itself_by_way_of_others(data: st.DataObject) -> None:
    """Each reader asks when it likes, goes over or not, and leaves the old way when it likes."""
    known: Edges = {}
    reads: Edges = dict.fromkeys(READERS, ("home",))
    moved = 0
    for _ in range(data.draw(st.integers(1, 40))):
        reader = data.draw(st.sampled_from(READERS))
        match data.draw(st.sampled_from(("ask", "arrive", "tell"))):
            case "ask":
                to = data.draw(st.sampled_from(READERS))
                known, granted = after(known, hang(reader, reads[reader], to))
                if granted and data.draw(st.booleans()):  # else the answer is lost
                    reads[reader] = (*reads[reader], to)
                    moved += 1
            case "arrive":
                reads[reader] = reads[reader][-1:]
            case "tell":
                known, _ = after(known, hang(reader, reads[reader], None))
        for one in READERS:
            assert all(one not in above(reads, publisher) for publisher in reads[one])
