"""Which experiments there are: every module of `experiments.catalogue`, by its file.

Names and summaries come from the files' text, not from imports: a listing is instant, and a broken
experiment does not hide the others.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import pkgutil
from pathlib import Path
from typing import Any, Protocol

from thalweg.experiments import catalogue
from thalweg.experiments.report import Progress, Report


class UnknownExperiment(Exception):
    """There is none of that name; says which one may have been meant."""


class Experiment(Protocol):
    """What a module of the catalogue has."""

    Parameters: Any  # a frozen dataclass; its defaults are the full run, `quick()` about a minute

    def run(self, parameters: Any, progress: Progress) -> Report: ...


def experiments() -> dict[str, str]:
    """Every experiment's name, and the first line of its docstring."""
    found = {}
    for module in pkgutil.iter_modules(catalogue.__path__):
        if not module.name.startswith("_"):
            file = Path(module.module_finder.path) / f"{module.name}.py"  # type: ignore[union-attr]
            about = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
            found[module.name.replace("_", "-")] = about.partition("\n")[0]
    return dict(sorted(found.items()))


def load(name: str) -> Experiment:
    known = experiments()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
        meant = f"; did you mean {close[0]}?" if close else ""
        raise UnknownExperiment(
            f"there is no experiment {name}{meant} (`thalweg experiment` lists them all)"
        )
    return importlib.import_module(f"{catalogue.__name__}.{name.replace('-', '_')}")
