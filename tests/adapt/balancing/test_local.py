"""Shapes follow rates, but not their noise."""

from thalweg.adapt.balancing.local import Hysteresis, LocalOptimiser, Statistics, expected_work
from thalweg.adapt.moves.state.shapes import all_shapes, parse
from thalweg.overlay.generator import Generator

AB_C, BC_A = parse("((A B) C)", "ABC"), parse("(A (B C))", "ABC")


def rates(a, b, c, keys=500.0):
    return Statistics((a, b, c), (200.0,) * 3, keys, 100.0)


def test_slow_inputs_are_joined_first():
    slow = rates(10.0, 0.5, 0.5)
    assert expected_work(BC_A, slow) < expected_work(AB_C, slow)
    assert min(all_shapes(3), key=lambda s: expected_work(s, slow)) == BC_A


def test_a_change_of_rates_changes_the_shape_after_two_looks():
    optimiser = LocalOptimiser()
    assert optimiser.better(0, AB_C, rates(10.0, 0.5, 0.5)) is None
    assert optimiser.better(20, AB_C, rates(10.0, 0.5, 0.5)) == BC_A
    assert "instead of" in optimiser.why


def test_with_steady_statistics_no_shape_changes_twice_in_ten_windows():
    for seed in range(50):
        generator = Generator(seed)
        optimiser, shape, changed = LocalOptimiser(Hysteresis()), AB_C, []
        mean = [generator.between(2, 200) / 10 for _ in range(3)]
        for look in range(100):  # ten windows
            noisy = [m * (0.85 + 0.3 * generator.unit()) for m in mean]
            better = optimiser.better(look * 20, shape, rates(*noisy))
            if better is not None:
                changed.append(look)
                shape = better
        assert len(changed) <= 1, (seed, mean, changed)


def test_without_hysteresis_they_would(monkeypatch):
    changes = 0
    for seed in range(50):
        generator = Generator(seed)
        optimiser, shape = LocalOptimiser(Hysteresis(gain=1.0, looks=1)), AB_C
        mean = [generator.between(2, 200) / 10 for _ in range(3)]
        for look in range(100):
            noisy = [m * (0.85 + 0.3 * generator.unit()) for m in mean]
            better = optimiser.better(look * 20, shape, rates(*noisy))
            changes += better is not None
            shape = better or shape
    assert changes > 200
