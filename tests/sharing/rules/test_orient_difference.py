from tests.sharing.decidable import auctions, normal

from thalweg.cql import compile_script
from thalweg.sharing.core import Core


def core(condition: str) -> Core:
    return auctions("O.*", 5, f"AND {condition}").core


def test_both_directions_of_a_difference_are_one_condition() -> None:
    one = core("C.timestamp - O.timestamp <= INTERVAL '3' HOUR")
    other = core("O.timestamp - C.timestamp >= INTERVAL '-3' HOUR")
    assert one == other


def test_a_difference_of_whole_numbers_might_overflow_one_way_only_and_stays() -> None:
    text = "SELECT k FROM S WHERE {};"
    catalog = compile_script("CREATE STREAM S (k BIGINT, v BIGINT) TIMESTAMP BY t BIGINT;").catalog
    one, other = (
        normal(compile_script(text.format(c), catalog).queries[0].plan).core
        for c in ("v - k <= 3", "k - v >= -3")
    )
    assert one != other
