"""Drawn queries of which containment can be decided, and the auctions of COSMOS, table 3.1."""

from __future__ import annotations

from hypothesis import strategies as st

from thalweg.cql import compile_script
from thalweg.plan.nodes import Node
from thalweg.sharing.core import NormalQuery
from thalweg.sharing.normal import normalise

DECIDABLE = compile_script("""
CREATE STREAM O (ts BIGINT, k INTEGER, v INTEGER) TIMESTAMP BY ts;
CREATE STREAM C (ts BIGINT, k INTEGER, w INTEGER) TIMESTAMP BY ts;
""").catalog
COLUMNS = {"O": ("O.k", "O.v"), "C": ("C.k", "C.w")}
VALUES = (1, 0, 2, 3, 4, None)
# Conditions speak of 1 to 3, and of differences up to 3; a difference of the last two overflows.
INSTANTS = (*range(-4, 7), 1 << 62, -(1 << 62))


@st.composite
def decidable_queries(draw: st.DrawFn, sources: tuple[str, ...]) -> str:
    def pick(*options: str) -> str:
        return draw(st.sampled_from(options))

    columns = [c for s in sources for c in COLUMNS[s]]
    where = []
    for _ in range(draw(st.integers(0, 3))):
        constant = pick("1", "2", "3")
        across = ["difference", "difference", "order"] if "C" in sources else []
        match pick("range", "range", "equal", "stamp", *across):
            case "range":
                where.append(f"{pick(*columns)} {pick('<', '<=', '>', '>=', '=')} {constant}")
            case "equal":
                where.append(f"{pick(*columns)} = {pick(*columns)}")
            case "stamp":
                where.append(f"{pick(*sources)}.ts {pick('<=', '>')} {constant}")
            case "order":
                where.append(f"O.ts {pick('<', '<=', '=', '>=', '>')} C.ts")
            case _:
                sign = pick("", "-")
                where.append(f"O.ts - C.ts {pick('<=', '>=', '=')} {sign}{constant}")
    windows = ("[Now]", "[Range 1]", "[Range 2]", "[Range 3]", "[Unbounded]")
    outputs = ", ".join(f"{pick(*columns)} AS c{i}" for i in range(draw(st.integers(1, 2))))
    listed = ", ".join(f"{s} {pick(*windows)}" for s in sources)
    return f"SELECT {outputs} FROM {listed}" + (f" WHERE {' AND '.join(where)}" if where else "")


AUCTIONS = compile_script("""
CREATE STREAM OpenAuction (itemID INTEGER, sellerID INTEGER, start_price DOUBLE,
    timestamp TIMESTAMP) TIMESTAMP BY timestamp RESOLUTION 1 second;
CREATE STREAM ClosedAuction (itemID INTEGER, buyerID INTEGER, timestamp TIMESTAMP)
    TIMESTAMP BY timestamp RESOLUTION 1 second;
""").catalog
AUCTION = """
SELECT {} FROM OpenAuction [Range {} Hour] O, ClosedAuction [Now] C WHERE O.itemID = C.itemID {}
"""


def auctions(outputs: str, hours: int, more: str = "") -> NormalQuery:
    text = AUCTION.format(outputs, hours, more)
    return normal(compile_script(f"{text};", AUCTIONS).queries[0].plan)


def normal(plan: Node) -> NormalQuery:
    query = normalise(plan)
    assert isinstance(query, NormalQuery), query
    return query
