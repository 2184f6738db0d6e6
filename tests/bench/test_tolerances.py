from bench.tolerances import Parameters, run


def test_ticks_are_measured_for_each_number_of_classes() -> None:
    small = Parameters(classes=(1, 3), rows=40, symbols=4, ticks=2, most_queries=1)
    report = run(small, lambda *_: None)
    elsewhere, here = "readers elsewhere", "queries"
    assert [(r["classes"], r["for"], r["rows a tick"]) for r in report.rows] == [
        (1, elsewhere, 40),
        (1, elsewhere, 1),
        (1, here, 40),
        (3, elsewhere, 40),
        (3, elsewhere, 1),
    ]
    assert all(r["deciding, µs a row"] > 0 and r["tick, CPU s"] > 0 for r in report.rows)
    assert [(g.name, g.unit) for g in report.goals] == [
        ("3 classes, a tick of 40 rows", "s of CPU"),
        ("3 classes, a tick of one row", "ms of CPU"),
    ]
