from pathlib import Path

from bench.submit import SCHEMA, World
from thalweg.cql import compile_script
from thalweg.engine.site import IN_PROCESS, open_site


def test_a_new_query_finds_the_history_that_it_asks_for(tmp_path: Path) -> None:
    """In a column that the standing query does not read."""
    site = open_site(tmp_path / "data", compile_script, master=IN_PROCESS)
    try:
        site.execute(SCHEMA)
        world = World(site, 200)
        assert world.submit(1) > 0
        assert world.event(1) > 0
    finally:
        site.close()
