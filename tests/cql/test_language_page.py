"""docs/language.md: its examples compile, its functions exist, its message is the real one."""

import re
from pathlib import Path

import pytest

from thalweg.cql import CqlError, compile_script
from thalweg.cql.units import MICROSECONDS
from thalweg.plan.catalog import Catalog
from thalweg.plan.functions import EXTRACT_PARTS, FUNCTIONS, INTERVAL_PARTS, TRUNC_PARTS

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text()
FENCES = re.findall(r"^```([a-z ]*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLES = [body for info, body in FENCES if info == "cql"]


def _catalog() -> Catalog:
    catalog = Catalog()
    for example in EXAMPLES:
        catalog = compile_script(example, catalog, name="docs/language.md").catalog
    return catalog


def test_examples_compile_from_top_to_bottom() -> None:
    assert len(EXAMPLES) > 10
    assert {s.name for s in _catalog().streams()} >= {"OpenAuction", "Person", "Packet"}


def test_the_refused_example_gets_the_message_that_follows_it() -> None:
    index = next(i for i, (info, _) in enumerate(FENCES) if info == "cql refused")
    info, message = FENCES[index + 1]
    assert info == "text"
    with pytest.raises(CqlError) as caught:
        compile_script(FENCES[index][1], _catalog(), name="auctions.cql")
    assert f"{caught.value}\n" == message


def test_every_function_is_on_the_page() -> None:
    section = PAGE.split("## Functions")[1].split("\n## ")[0].lower()
    operators = {"and", "or", "not", "in", "like", "neg", "is_null", "is_not_null"}
    names = {name for name in FUNCTIONS if name.isidentifier()} - operators
    missing = {n for n in names if n not in section}
    assert missing == set()
    assert all(p in section for p in (*EXTRACT_PARTS, *INTERVAL_PARTS, *TRUNC_PARTS))


def test_every_function_on_the_page_exists() -> None:
    section = PAGE.split("## Functions")[1].split("\n## ")[0]
    catalog = compile_script("CREATE STREAM s (x INT) TIMESTAMP BY ts").catalog
    for name in re.findall(r"`([A-Z_]+)", section):
        try:
            compile_script(f"SELECT {name}(x, x) FROM s [Now]", catalog)
        except CqlError as error:
            messages = [d.message for d in error.diagnostics]
        else:
            messages = []
        assert not any("there is no function" in m for m in messages), name


def test_units_on_the_page_exist() -> None:
    line = PAGE.split("Units: ")[1].split("\n\n")[0]
    units = set(re.findall(r"`([a-z]+)`", line))
    assert len(units) > 10
    assert units <= set(MICROSECONDS)
