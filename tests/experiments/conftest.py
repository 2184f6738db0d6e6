"""A catalogue of experiments for tests, read from a folder as the real one is."""

import sys
from pathlib import Path

import pytest

from thalweg.experiments import catalogue

COIN = '''"""How often a coin shows heads.

The seeds are the throws.
"""

from dataclasses import asdict, dataclass

from thalweg.experiments.report import Beside, Goal, Report


@dataclass(frozen=True)
class Parameters:
    seeds: int = 20
    fair: bool = True
    sides: tuple[str, ...] = ("heads", "tails")

    def __post_init__(self):
        if len(self.sides) != 2:
            raise ValueError("a coin has two sides")

    @classmethod
    def quick(cls):
        return cls(seeds=2)


def run(parameters, progress):
    heads = 0
    for seed in range(parameters.seeds):
        progress(f"seed {seed}", seed / parameters.seeds)
        heads += seed % 2 if parameters.fair else 1
    share = heads / parameters.seeds
    rows = [{"seeds": parameters.seeds, "heads": heads}]
    return Report(
        "coin",
        "Heads",
        asdict(parameters),
        rows,
        goals=[Goal("share of heads", share, 0.9)],
        beside=[Beside("1", "half", f"{share}", "chance")],
        figures={"share": lambda axes: axes.plot([0, 1], [0, share])},
    )
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    here = tmp_path / "catalogue"
    here.mkdir()
    (here / "coin_toss.py").write_text(COIN)
    (here / "_shared.py").write_text("raise AssertionError('no experiment')")
    (here / "broken.py").write_text('"""Never runs."""\nimport nothing_of_that_name\n')
    monkeypatch.setattr(catalogue, "__path__", [str(here)])
    before = set(sys.modules)
    yield here
    for name in set(sys.modules) - before:
        if name.startswith(f"{catalogue.__name__}."):
            del sys.modules[name]
            delattr(catalogue, name.rpartition(".")[2])
