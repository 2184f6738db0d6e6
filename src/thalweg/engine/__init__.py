"""Runs plans: SteMs, ticks, sources, sinks; the reference and native engines.

The only package that imports pyspark. Of Thalweg it imports `plan` and `sharing`.
"""
