"""Graphviz source of a deployment, or of one query's plan."""

from __future__ import annotations

from collections.abc import Iterator

from thalweg.placement.cost import load_of
from thalweg.placement.deployment import Deployment
from thalweg.placement.drawing.flows import flows
from thalweg.placement.explain import Kind, Node, sending, title
from thalweg.placement.problem import Problem
from thalweg.placement.units import bps, percent

_NODES = '  node [shape=box, fontname="sans-serif"];'
_NAMED = 3  # streams on an arrow that are named; of more, the number is told


def deployment_dot(problem: Problem, deployment: Deployment) -> str:
    """Hosts with their load, and what they send each other."""
    load = load_of(problem, deployment)
    runs = deployment.runs[:, 0].tolist()
    lines = ["digraph deployment {", _NODES]
    for host, name in enumerate(problem.hosts.names):
        used = f"CPU {percent(load.cpu[host], problem.hosts.cpu[host])}"
        lines.append(f"  h{host} [label={_quoted(name, f'{used}, runs {runs.count(host)}')}];")
    for flow in flows(problem, deployment):
        names = [problem.streams.names[s] for s in flow.streams]
        more = [f"and {len(names) - _NAMED} more"] if len(names) > _NAMED else []
        label = _quoted(", ".join(names[:_NAMED] + more), bps(flow.rate_bps))
        lines.append(f"  h{flow.source} -> h{flow.target} [label={label}];")
    return "\n".join([*lines, "}", ""])


def plan_dot(problem: Problem, query: int, plan: Node) -> str:
    """One query's plan: what runs and relays where, down to the base streams."""
    name = _quoted(problem.queries.names[query])
    lines = ["digraph plan {", "  rankdir=BT;", _NODES, f"  query [label={name}, shape=plaintext];"]
    result = _quoted(problem.streams.names[plan.stream])
    lines += _lines(problem, plan, "n")
    return "\n".join([*lines, f"  n -> query [label={result}];", "}", ""])


def _lines(problem: Problem, node: Node, path: str) -> Iterator[str]:
    shape = "" if node.kind is Kind.RUN else ", style=rounded"
    yield f"  {path} [label={_quoted(*title(problem, node))}{shape}];"
    for number, arc in enumerate(node.inputs):
        below = f"{path}_{number}"
        yield from _lines(problem, arc.node, below)
        told = sending(problem, arc, node.host) or problem.streams.names[arc.node.stream]
        style = ", style=bold" if arc.sent else ""
        yield f"  {below} -> {path} [label={_quoted(told)}{style}];"


def _quoted(*lines: str) -> str:
    text = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return f'"{text}"'
