from bench.register import Parameters, run


def test_queries_are_submitted_and_stand_again_after_a_kill() -> None:
    said: list[str] = []

    def progress(text: str, fraction: float | None = None) -> None:
        said.append(text)

    report = run(Parameters(queries=50, master="in-process", settling_s=0.1), progress)
    (row,) = report.rows
    assert row["queries"] == 50
    assert row["submit s"] > 0
    assert row["submit CPU s"] > 0
    assert row["start s"] > 0
    assert [g.name for g in report.goals if g.at_least] == []
    assert said[-1] == "starting it again"
