"""What EXPLAIN prints (explain/*.txt); `pytest tests/cql tests/engine/site --regenerate-golden`
writes what it prints now into the files."""

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from tests.cql.casefiles import Case, check, parameters

from thalweg.cql import CqlError, compile_script
from thalweg.engine.site import IN_PROCESS, Site, WrongUse, open_site

HERE = Path(__file__).parent / "explain"


@pytest.fixture(scope="module")
def auctions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = open_site(tmp_path_factory.mktemp("explain"), compile_script, master=IN_PROCESS)
    site.execute((HERE / "schema.cql").read_text())
    yield site
    site.close()


@pytest.mark.parametrize(("path", "case"), parameters(HERE))
def test_a_query_is_explained_as_on_file(
    path: Path, case: Case, auctions: Site, request: pytest.FixtureRequest
) -> None:
    regenerate = bool(request.config.getoption("--regenerate-golden", default=False))
    check(path, case, lambda text: auctions.explain(text, path.stem).text, regenerate)
    assert auctions.catalog.queries() == ()


def test_a_running_query_shows_its_state_its_fan_outs_and_with_whom_it_shares(site: Site) -> None:
    site.execute(
        "CREATE STREAM L (k INTEGER) TIMESTAMP BY ts; CREATE STREAM R (k INTEGER) TIMESTAMP BY ts;"
        "CREATE QUERY j AS SELECT L.k FROM L [Range 100], R [Range 100] WHERE L.k = R.k;"
        "CREATE QUERY n AS SELECT COUNT(*) AS n FROM "
        "  (SELECT L.k FROM L [Range 100], R [Range 100] WHERE L.k = R.k) X"
    )
    with site.gate.between_ticks():
        site.push("L", pl.DataFrame({"ts": [1, 2, 3, 9], "k": [1, 1, 2, 3]}))
        site.push("R", pl.DataFrame({"ts": [4, 5], "k": [1, 7]}))
    site.settle()
    text = site.explain("j", "physical").text
    assert "new L probes R by L.k (×0.667)" in text
    assert "shared with n" in text
    assert "SteM by k: 4 rows" in text
    assert "keeps rows: " in site.explain("n", "physical").text
    plan = json.loads(site.explain("j", "physical").json())["plan"]
    join = plan["inputs"][0]["inputs"][0]
    assert join["operator"] == "Join"
    assert join["inputs"][0]["stems"] == [
        {"by": "k", "rows": 4, "bytes": join["inputs"][0]["stems"][0]["bytes"], "segments": 1}
    ]


def test_json_says_what_the_text_says(auctions: Site) -> None:
    found = auctions.explain("SELECT price FROM Bid [Now]", "logical").data
    assert found["plan"]["operator"] == "Project"
    assert found["plan"]["columns"] == [{"name": "price", "type": "DOUBLE"}]
    job = auctions.explain("SELECT price FROM Bid [Now]", "spark").data["plan"]
    assert (job["stages"], job["shuffles"]) == (1, 0)


def test_what_can_not_be_explained_is_refused(auctions: Site) -> None:
    with pytest.raises(CqlError, match="no column"):
        auctions.explain("SELECT nothing FROM Bid", "physical")
    with pytest.raises(WrongUse, match="logical, physical, spark"):
        auctions.explain("SELECT price FROM Bid", "magical")
    with pytest.raises(WrongUse, match="no query"):
        auctions.explain("CREATE STREAM Z (a INTEGER) TIMESTAMP BY ts", "logical")
