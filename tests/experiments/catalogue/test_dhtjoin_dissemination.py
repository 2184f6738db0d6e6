from thalweg.experiments.catalogue.dhtjoin_dissemination import Parameters, points, run
from thalweg.experiments.report import write


def test_both_readings_of_the_rates_are_run():
    parts = {p.part for p in points(Parameters())}
    assert {"table 5.2", "table 5.2, rate of the text", "table 5.3", "stabilisation"} <= parts
    assert len([p for p in points(Parameters()) if p.part == "table 5.2"]) == 4


def test_a_small_run_has_all_parts_beside_the_source(tmp_path):
    parameters = Parameters(
        nodes=16,
        seeds=1,
        hours=0.1,
        failures=(5.0,),
        fixed_periods_s=(60,),
        five_minute_rates=(2,),
        stabilise_sweep_s=(30.0,),
    )
    report = run(parameters, lambda text, fraction=None: None)
    assert len(report.rows) == len(points(parameters))
    compared = [b.figure for b in report.beside]
    assert compared == ["figure 5.4", "table 5.2", "table 5.3", "table 5.4"]
    assert report.goals[0].name.startswith("coverage")
    write(report, tmp_path)
    assert (tmp_path / "dhtjoin-dissemination-5.4-coverage.svg").exists()
