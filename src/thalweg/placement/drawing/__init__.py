"""Deployments and plans as pictures: Graphviz source, and SVG without Graphviz."""
