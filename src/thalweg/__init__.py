"""Thalweg: a continuous-query network on Spark.

Standing CQL queries are planned together, share what they have in common, and run as one.
This module stays light on purpose: every import of a sub-package runs it first.
"""
