from bench.large_state import Parameters, run


def test_a_window_is_filled_probed_and_found_again() -> None:
    small = Parameters(gigabytes=0.002, rows_a_tick=5_000, probes=50, ticks=3, limit_gb=2.0)
    report = run(small, lambda text, fraction=None: None)
    assert [r["phase"] for r in report.rows] == ["filling", "after kill -9"]
    assert report.rows[1]["rows missing"] == 0
    assert all(0 < r["peak GB"] < 2 for r in report.rows)
    assert {g.name: g.met for g in report.goals}["rows missing"]
