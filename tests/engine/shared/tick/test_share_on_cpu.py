"""How much of a tick's time its tasks had a processor: what other jobs take is no work of ours."""

from thalweg.engine.shared.tick.measures import share_on_cpu
from thalweg.engine.shared.tick.messages import TaskReport


def report(busy_s: float, cpu_s: float) -> TaskReport:
    return TaskReport([], [], [], [], {}, busy_s=busy_s, cpu_s=cpu_s)


def test_what_other_jobs_take_is_left_out() -> None:
    assert share_on_cpu([report(1.0, 0.25)]) == 0.25
    assert share_on_cpu([report(1.0, 0.5), report(3.0, 0.5)]) == 0.25


def test_several_threads_count_as_one_and_what_nobody_measured_as_all() -> None:
    assert share_on_cpu([report(1.0, 2.0)]) == 1.0
    assert share_on_cpu([]) == 1.0
    assert share_on_cpu([report(1.0, 0.0)]) == 1.0
