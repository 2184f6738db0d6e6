import pytest

from thalweg.experiments.catalogue.dhtjoin_alerts import Parameters, run
from thalweg.experiments.report import write


def test_alerts_lose_no_result(tmp_path):
    parameters = Parameters(
        nodes=10, inactivity_s=(30.0,), windows_s=(4.0,), rates=(3.0,), after_s=8.0
    )
    report = run(parameters, lambda text, fraction=None: None)
    assert [r["figure"] for r in report.rows] == ["5.2", "5.3(a)", "5.3(b)"]
    silent = report.rows[0]
    assert silent["changes"] > 20
    assert silent["results kept %"] == 100.0
    write(report, tmp_path)
    assert (tmp_path / "dhtjoin-alerts-5.2-inactivity.svg").exists()


def test_a_silence_of_no_time_is_refused():
    with pytest.raises(ValueError, match="above 0"):
        Parameters(inactivity_s=(0.0,))
