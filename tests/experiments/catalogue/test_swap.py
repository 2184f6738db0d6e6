"""The experiments about joins across sites run in small, and their goals can be missed."""

from thalweg.experiments.catalogue import swap_fluctuation, swap_static
from thalweg.experiments.report import write
from thalweg.experiments.swap import methods


def ran(module, **changes):
    return module.run(module.Parameters(**changes), lambda *_: None)


def met(report, name):
    return [g.met for g in report.goals if name in g.name]


def test_static_settings_are_learned(tmp_path):
    report = ran(swap_static, scale=0.01, selectivities=(0.0, 0.5))
    assert {row["figure"][:4].strip() for row in report.rows} == {"5.5", "5.8", "5.11", "5.9"}
    assert all(goal.measured == goal.measured for goal in report.goals)
    write(report, tmp_path)
    assert (tmp_path / "swap-static-5.9-response.svg").exists()


def test_swap_is_ahead_of_both_static_plans_and_a_policy_that_does_not_adapt_is_not(monkeypatch):
    few = (methods.SWAP, *methods.STATIC, methods.KNOWN)
    monkeypatch.setattr(swap_fluctuation, "ALL", few)
    report = ran(swap_fluctuation, scale=0.04)
    assert met(report, "better static plan") == [True, True, True]
    assert {row["method"] for row in report.rows} == {*few, methods.BOUND}
    monkeypatch.setitem(methods.METHODS, methods.SWAP, methods.METHODS[methods.LOTTERY])
    assert not all(met(ran(swap_fluctuation, scale=0.04), "better static plan"))
