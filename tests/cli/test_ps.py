"""What `ps` shows of queries in a network."""

import pytest

from thalweg.cli.ps import stream_text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Bids", "Bids"),
        ("Log@lyon", "Log@lyon"),
        ("fragment/17beeb1aaa@lyon.1", "fragment 17beeb1aaa"),
        ("fragment/again/Bids.12", "Bids"),
        ("due/Bids", "due rows of Bids"),
        ("swap/sales#9a42bfbf7db8", "a join across nodes"),
        ("fragment", "fragment"),
    ],
)
def test_what_a_query_reads_of_others_is_said_in_words(name: str, shown: str) -> None:
    assert stream_text(name) == shown
