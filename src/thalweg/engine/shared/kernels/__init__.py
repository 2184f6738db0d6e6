"""Kernels: one file per operator, vectorised over a task's rows; `registry` lists them."""
