from prometheus_client import generate_latest
from tests.engine.site.conftest import rows

from thalweg.engine.site import Site


def test_prometheus_sees_queries_streams_and_ticks(site: Site) -> None:
    site.execute("CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE QUERY q AS SELECT a FROM S")
    site.push("S", rows((5, 1), (3, 2), (9, 1)))
    site.settle()
    lines = generate_latest(site.metrics).decode().splitlines()
    assert 'thalweg_query_rows_total{query="q"} 1.0' in lines
    assert 'thalweg_stream_arrived_total{stream="S"} 3.0' in lines
    assert 'thalweg_stream_late_total{stream="S"} 1.0' in lines
    assert "thalweg_healthy 1.0" in lines
    assert any(x.startswith('thalweg_tick_phase_seconds_total{phase="commit"}') for x in lines)
    assert "thalweg_tick_tuples_total 2.0" in lines
