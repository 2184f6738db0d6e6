"""From CQL text to a plan, with errors that say where, what, and what to do.

Pure. Imports `plan` only.
"""

from thalweg.cql.bind.statements import Change
from thalweg.cql.compile import Script, compile_each, compile_placed, compile_script
from thalweg.cql.errors import CqlError, Diagnostic
from thalweg.cql.parser import parse_script

__all__ = [
    "Change",
    "CqlError",
    "Diagnostic",
    "Script",
    "compile_each",
    "compile_placed",
    "compile_script",
    "parse_script",
]
