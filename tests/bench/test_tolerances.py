from bench.tolerances import Parameters, run


def test_a_tick_is_measured_for_each_number_of_classes() -> None:
    report = run(Parameters(classes=(1, 3), rows=40, symbols=4, ticks=1), lambda *_: None)
    who = "queries", "readers elsewhere"
    assert [(r["classes"], r["for"]) for r in report.rows] == [(n, w) for n in (1, 3) for w in who]
    assert all(r["classes, µs a row"] > 0 and r["tick, CPU s"] > 0 for r in report.rows)
    assert [g.name for g in report.goals] == ["3 classes, a row"]
