"""Many seeds of a scenario, and what they met."""

from collections import Counter
from pathlib import Path

from thalweg.sim.run import options_of, run

SEEDS = Path(__file__).parent / "seeds"


def kept_seeds(name):
    """Seeds that once failed, one a line; what follows the number says what they showed."""
    file = SEEDS / f"{name}.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return [int(line.split()[0]) for line in lines if line.strip() and not line.startswith("#")]


def failures(kind, seeds):
    """Problems by seed, and all faults that the seeds met together."""
    outcomes = [run(kind, seed) for seed in seeds]
    problems = {o.options.seed: o.problem for o in outcomes if o.problem is not None}
    return problems, sum((o.faults for o in outcomes), Counter())


def failures_under_every_fault(kind, seeds):
    """The same for so many seeds, and for more where they left out a fault of the scenario: a rare
    one (a long gap, in a short storm) is looked for among seeds that have drawn it."""
    problems, faults = failures(kind, range(seeds))
    for fault in kind.faults:
        drawn = (s for s in range(seeds, 50 * seeds) if fault in options_of(kind, s).present)
        while not faults[fault] and (seed := next(drawn, None)) is not None:
            more, met = failures(kind, [seed])
            problems |= more
            faults += met
    return problems, faults


def first_problem(kind, seeds):
    """What the first seed says that a broken protocol displeases; None if all are content."""
    outcomes = (run(kind, seed) for seed in seeds)
    return next((o.problem for o in outcomes if o.problem is not None), None)


def is_caught(kind, seeds):
    """Whether a promise was seen to break; an exception would only show a clumsy mutant."""
    problem = first_problem(kind, seeds)
    assert problem is None or "Error in " not in problem, problem
    return problem is not None
