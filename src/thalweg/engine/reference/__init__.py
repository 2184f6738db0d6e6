"""The reference engine: brute force, one instant at a time, plain Python.

It knows nothing of Spark, of sharing or of any other engine, and is the judge of them all.
`evaluate` gives what a plan prints; `run` also tells what was late or rejected.
"""

from thalweg.engine.reference.evaluator import (
    Options,
    Outcome,
    evaluate,
    evaluate_stream_of,
    run,
)
from thalweg.engine.reference.meaning import ClassStart

__all__ = ["ClassStart", "Options", "Outcome", "evaluate", "evaluate_stream_of", "run"]
