"""What `thalweg plan` is asked beyond its problem: queries in CQL, proxies, a bound on latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from thalweg.cli.exits import BAD_INPUT, CommandFailed, Mistakes
from thalweg.cql import CqlError, compile_script
from thalweg.placement.arrays import NONE, floats, ints
from thalweg.placement.cosmos.interests import problem_of_interests
from thalweg.placement.documents.names import Names
from thalweg.placement.from_cql.problem import Measured, problem_of_queries
from thalweg.placement.problem import Problem, ProblemError


def with_cql(network: Problem, file: Path, *, whole: bool = False) -> Problem:
    """The queries of a script, over the hosts and base streams of a problem that has none.

    `whole` is for strategies that place whole queries: each is then one operator over the parts of
    streams that it wants.
    """
    if len(network.operators) or len(network.queries):
        told = "with --cql, the problem has hosts and base streams only"
        raise CommandFailed(f"{file}: {told}; leave out its operators and queries", BAD_INPUT)
    try:
        text = file.read_text(encoding="utf-8")
        script = compile_script(text, name=str(file))
    except OSError as error:
        raise CommandFailed(f"{file}: {error.strerror}", BAD_INPUT) from None
    except CqlError as error:
        raise Mistakes(error.render()) from None
    if not script.queries:
        raise CommandFailed(f"{file}: there is no query in it: CREATE QUERY … AS …", BAD_INPUT)
    known = {name.lower(): i for i, name in enumerate(network.streams.names)}
    named = {
        stream.name: known[stream.name.lower()]
        for stream in script.catalog.streams()
        if stream.name.lower() in known
    }
    measured = Measured(
        {name: int(network.streams.home[i]) for name, i in named.items()},
        {name: float(network.streams.rate_bps[i]) for name, i in named.items()},
    )
    try:
        made = problem_of_interests if whole else problem_of_queries
        return made(network.hosts, script.queries, measured)
    except ValueError as error:
        raise CommandFailed(f"{file}: {error} (among the problem's streams)", BAD_INPUT) from None


def with_wishes(problem: Problem, proxies: Sequence[str], bound_ms: float | None) -> Problem:
    """Proxies as HOST for all queries that have none, or as QUERY=HOST; one bound for all."""
    queries = problem.queries
    hosts, names = Names("host", problem.hosts.names), Names("query", queries.names)
    proxy = queries.proxy.copy()
    try:
        for text in sorted(proxies, key=lambda wish: "=" in wish):  # single ones have the last word
            query, _, host = text.rpartition("=")
            if query:
                proxy[names.number(query, f"--proxy {text}")] = hosts.number(
                    host, f"--proxy {text}"
                )
            else:
                proxy[proxy == NONE] = hosts.number(host, f"--proxy {text}")
        bounds = queries.latency_bound_ms
        if bound_ms is not None:
            bounds = floats(np.minimum(bounds, bound_ms))
        wished = replace(queries, proxy=ints(proxy), latency_bound_ms=bounds)
        return Problem(problem.hosts, problem.streams, problem.operators, wished, problem.running)
    except ProblemError as error:
        raise CommandFailed(str(error), BAD_INPUT) from None
