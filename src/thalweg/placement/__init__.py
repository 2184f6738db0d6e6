"""What is admitted and where each operator runs.

Problem, Deployment, the independent checker `verify`, and one strategy per file.
Pure. Imports `plan` and `sharing`.
"""
