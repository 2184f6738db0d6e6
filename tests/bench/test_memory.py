from bench.memory import QUERIES, Parameters, run


def test_a_peak_is_measured_for_each_query_and_size() -> None:
    said: list[str] = []

    def progress(text: str, fraction: float | None = None) -> None:
        said.append(text)

    report = run(Parameters(tuples=(400, 800), queries=("NOT IN",)), progress)
    assert [r["tuples a side"] for r in report.rows] == [400, 800]
    assert all(r["peak MB"] > 0 and r["s"] > 0 for r in report.rows)
    assert [g.name for g in report.goals] == ["NOT IN: growth", "NOT IN: memory"]
    assert said == ["NOT IN, 400 tuples a side", "NOT IN, 800 tuples a side"]
    assert set(Parameters().queries) == set(QUERIES)
