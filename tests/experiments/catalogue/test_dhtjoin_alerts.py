import pytest

from thalweg.experiments.catalogue.dhtjoin_alerts import Parameters, run
from thalweg.experiments.report import write


def test_a_small_run_has_all_figures(tmp_path):
    parameters = Parameters(
        seeds=1, inactivity_s=(60,), windows_s=(10,), rates=(30,), ranges=4, run_s=130
    )
    report = run(parameters, lambda text, fraction=None: None)
    assert [r["figure"] for r in report.rows] == ["5.2", "5.3(a)", "5.3(b)"]
    silent = report.rows[0]
    assert silent["exact: results %"] == 100.0
    assert silent["as printed: saved %"] > silent["exact: saved %"] > 0
    write(report, tmp_path)
    assert (tmp_path / "dhtjoin-alerts-5.2-inactivity.svg").exists()


def test_a_run_shorter_than_the_inactivity_is_refused():
    with pytest.raises(ValueError, match="too short"):
        Parameters(run_s=100)
