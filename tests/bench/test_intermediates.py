from bench.intermediates import CASES, Parameters, run


def test_each_case_is_measured_in_all_shapes_and_results_are_equal() -> None:
    report = run(Parameters(ticks=6, window=2, cases=(0, 9)), lambda *_: None)
    assert [r["case"] for r in report.rows] == [c.name for c in (CASES[0], CASES[9])]
    assert all(r["equal"] and r["MJoin, ms a tick"] > 0 and r["A⋈B MB"] > 0 for r in report.rows)
    assert len(report.goals) == 4
