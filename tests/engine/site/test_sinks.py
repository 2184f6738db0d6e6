"""CREATE SINK, DROP SINK: a part of the language, and of the transaction."""

import json
from pathlib import Path

import polars as pl
import pytest
from tests.engine.site.conftest import OpenSite, rows

from thalweg.api.execute import execute
from thalweg.cql import CqlError
from thalweg.engine.shared.replacing import CannotReplace
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.callback import CallbackSink
from thalweg.engine.site import Site
from thalweg.plan.catalog import QueryDef

SCRIPT = (
    "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE QUERY q AS SELECT a FROM S [Range 100];"
    "CREATE QUERY r AS SELECT a FROM S [Range 100];"
)


def step(site: Site, *stamped: tuple[int, int]) -> None:
    site.push("S", rows(*stamped))
    site.settle()


def values(path: Path) -> list[int]:
    return [json.loads(line)["row"]["a"] for line in path.read_text().splitlines()]


def test_a_sink_is_made_by_a_statement_and_goes_on_after_a_restart(
    open_here: OpenSite, tmp_path: Path
) -> None:
    site = open_here()
    site.execute(SCRIPT + "CREATE SINK out FROM q INTO 'jsonl:out'")
    step(site, (1, 10), (2, 20))
    site.close()
    site = open_here()
    step(site, (3, 30), (4, 40))
    assert values(tmp_path / "out") == [10, 20, 30]
    (found,) = site.sinks.all(site.catalog)
    assert (found.name, found.query, found.target) == ("out", "q", "jsonl:out")
    site.execute("DROP SINK out")
    step(site, (5, 50), (6, 60))
    assert values(tmp_path / "out") == [10, 20, 30]
    assert site.sinks.all(site.catalog) == []
    assert "SINK" not in site.book.script()


def test_a_sink_that_is_made_again_continues_the_file(site: Site, tmp_path: Path) -> None:
    site.execute(SCRIPT + "CREATE SINK out FROM q INTO 'jsonl:out'")
    step(site, (1, 10), (2, 20))
    site.execute("DROP SINK out")
    step(site, (3, 30))
    site.execute("CREATE SINK out FROM q INTO 'jsonl:out'")
    step(site, (4, 40), (5, 50))
    assert values(tmp_path / "out") == [10, 30, 40]


def test_two_sinks_on_one_file_or_folder_are_refused(site: Site, tmp_path: Path) -> None:
    site.execute(
        SCRIPT + "CREATE SINK out FROM q INTO 'jsonl:out'; CREATE SINK p FROM q INTO 'parquet:f'"
    )
    for statement in (
        "CREATE SINK t FROM r INTO 'jsonl:out'",
        "CREATE SINK t FROM q INTO 'csv:../" + tmp_path.name + "/out'",
        "CREATE SINK t FROM r INTO 'parquet:f'",
    ):
        with pytest.raises(SinkError, match="two would spoil it"):
            site.execute(statement)
    with pytest.raises(SinkError, match="sink out of q writes to"):
        site.write_to("r", "jsonl:out")
    step(site, (1, 10), (2, 20))
    assert values(tmp_path / "out") == [10]
    assert len(site.sinks.all(site.catalog)) == 2


def test_a_file_that_another_service_writes_is_refused(open_here: OpenSite) -> None:
    one, other = open_here("one"), open_here("other")
    for site in (one, other):
        site.execute(SCRIPT)
    one.execute("CREATE SINK out FROM q INTO 'jsonl:out'")
    with pytest.raises(SinkError, match="another sink writes to"):
        other.execute("CREATE SINK out FROM q INTO 'jsonl:out'")


def test_a_script_whose_sink_can_not_be_opened_does_nothing(site: Site, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(SinkError, match="is a folder: name a file in it"):
        site.execute(
            SCRIPT + "CREATE SINK out FROM q INTO 'jsonl:fine'; "
            "CREATE SINK t FROM q INTO 'jsonl:folder'"
        )
    assert site.catalog.definitions == {}
    site.execute(SCRIPT + "CREATE SINK out FROM q INTO 'jsonl:fine'")
    step(site, (1, 10), (2, 20))
    assert values(tmp_path / "fine") == [10]


def test_a_drop_that_is_taken_back_leaves_the_sink_open(site: Site, tmp_path: Path) -> None:
    site.execute(SCRIPT + "CREATE SINK out FROM q INTO 'jsonl:out'")
    step(site, (1, 10), (2, 20))
    with pytest.raises(SinkError):
        site.execute("DROP SINK out; CREATE SINK t FROM q INTO 'nothing:x'")
    step(site, (3, 30))
    assert values(tmp_path / "out") == [10, 20]


def test_what_is_wrong_with_a_sink_points_into_the_text(site: Site) -> None:
    site.execute(SCRIPT)
    with pytest.raises(CqlError) as caught:
        execute(site, "CREATE SINK out FROM q INTO 'parquet:f' OPTIONS (max_rwos '1')")
    assert "there is no option max_rwos; did you mean max_rows?" in str(caught.value)
    assert caught.value.diagnostics[0].column == 13
    with pytest.raises(CqlError, match="option max_age is a length of time such as '10 seconds'"):
        execute(site, "CREATE SINK out FROM q INTO 'parquet:f' OPTIONS (max_age 'soon')")


def test_rows_of_a_parquet_sink_wait_for_a_file_and_survive_a_restart(
    open_here: OpenSite, tmp_path: Path
) -> None:
    site = open_here()
    site.execute(SCRIPT + "CREATE SINK out FROM q INTO 'parquet:f' OPTIONS (max_age '1 hour')")
    step(site, (1, 10), (2, 20))
    step(site, (3, 30))
    assert not list((tmp_path / "f").glob("*.parquet"))
    site.close()
    assert pl.read_parquet(tmp_path / "f" / "*.parquet")["a"].to_list() == [10, 20]


def test_rows_that_have_waited_get_their_file_though_nothing_comes(
    site: Site, tmp_path: Path
) -> None:
    site.execute(SCRIPT + "CREATE SINK out FROM q INTO 'parquet:f' OPTIONS (max_age '1 hour')")
    step(site, (1, 10), (2, 20))
    sink = site.outlet._sinks._sinks["q", "out"]._sink  # type: ignore[attr-defined,union-attr]
    sink._most_age_s = 0.0
    site.ticker._rest()
    assert pl.read_parquet(tmp_path / "f" / "*.parquet")["a"].to_list() == [10]


def test_a_query_takes_its_sinks_with_it(open_here: OpenSite, tmp_path: Path) -> None:
    site = open_here()
    site.execute(SCRIPT + "CREATE SINK out FROM q INTO 'jsonl:out'")
    site.stop("q")
    site.close()
    site = open_here()
    assert [d.name for d in site.catalog.definitions.values()] == ["S", "r"]


def test_a_sink_stays_with_a_query_that_is_replaced(site: Site, tmp_path: Path) -> None:
    site.execute(SCRIPT + "CREATE SINK out FROM q INTO 'jsonl:out'")
    step(site, (1, 10), (2, 20))
    site.execute("CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 100] WHERE a > 15")
    step(site, (3, 30))
    ops = [json.loads(line)["op"] for line in (tmp_path / "out").read_text().splitlines()]
    assert ops == ["+", "end", "-", "+"]


def test_a_sink_can_be_replaced(site: Site, tmp_path: Path) -> None:
    site.execute(SCRIPT + "CREATE SINK out FROM q INTO 'jsonl:out'")
    step(site, (1, 10), (2, 20))
    site.execute("CREATE OR REPLACE SINK out FROM q INTO 'jsonl:other'")
    step(site, (3, 30))
    assert values(tmp_path / "out") == [10]
    assert values(tmp_path / "other") == [20]


class Choosy(CallbackSink):
    """Takes queries that have a column a."""

    def check_query(self, query: QueryDef) -> None:
        if "a" not in (f.name for f in query.plan.schema):
            raise SinkError(f"{query.name} has no a")


def test_a_sink_that_is_choosy_is_asked_first(site: Site) -> None:
    site.sinks._open = lambda *_: Choosy(lambda _: None)
    site.execute(SCRIPT + "CREATE QUERY b AS SELECT a AS b FROM S [Now]")
    with pytest.raises(SinkError, match="b has no a") as refused:
        site.execute("CREATE SINK out FROM b INTO 'jsonl:out'")
    assert refused.value.sink == "out"
    with pytest.raises(SinkError, match="b has no a"):
        site.write_to("b", "jsonl:out")
    assert site.sinks.all(site.catalog) == []
    site.execute("CREATE SINK out FROM q INTO 'jsonl:out'")
    with pytest.raises(CannotReplace, match="q has no a; or drop sink out first"):
        site.execute("CREATE OR REPLACE QUERY q AS SELECT a AS b FROM S [Range 100]")
    site.execute("CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 50]")
