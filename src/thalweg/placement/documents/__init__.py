"""Problems and deployments as JSON, where things have names instead of numbers."""

from thalweg.placement.documents.reading import read_deployment, read_problem
from thalweg.placement.documents.writing import write_deployment, write_problem

__all__ = ["read_deployment", "read_problem", "write_deployment", "write_problem"]
