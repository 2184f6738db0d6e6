import pytest

from thalweg.engine.site import Position
from thalweg.engine.site.positions import parse_position


@pytest.mark.parametrize("position", [Position(0), Position(7), Position(7, 0), Position(12, 345)])
def test_a_position_reads_back(position: Position) -> None:
    assert parse_position(str(position)) == position


def test_a_whole_tick_stands_behind_its_rows() -> None:
    assert Position(7, 99) < Position(7) < Position(8, 0)
    assert str(Position(7)) == "7"


@pytest.mark.parametrize("text", ["", "x", "1-", "-1", "1-2-3", "1.5"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no result id"):
        parse_position(text)
