"""From CQL text to a plan, with errors that say where, what, and what to do.

Pure. Imports `plan` only.
"""
