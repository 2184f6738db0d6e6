"""All candidates of one query, and the best of them, for the heuristic planner (SQPR, V-A)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from thalweg.placement.abstract import abstract_plans
from thalweg.placement.arrays import NONE, Floats, Ints
from thalweg.placement.cost import Weights, shares, yardsticks
from thalweg.placement.heuristic.listing import list_plans
from thalweg.placement.heuristic.recipes import Recipe, RecipeMaker, host_groups
from thalweg.placement.ledger import Ledger
from thalweg.placement.rows import Shortage
from thalweg.placement.sqpr.reuse_rules import NoRule, ReuseRule


@dataclass(frozen=True, slots=True)
class Candidate:
    host: int
    recipe: Recipe
    price: float  # what it adds to the weighted objective (III.3), O₁ aside


class Search:
    def __init__(
        self, ledger: Ledger, weights: Weights, query: int, reuse: ReuseRule | None = None
    ) -> None:
        problem = ledger.problem
        self._problem = problem
        self._ledger = ledger
        self._weights = weights
        self._reuse = reuse or NoRule()
        self._plans = abstract_plans(problem, int(problem.queries.wanted[query]))
        self._reuse.see(self._plans)
        self._wanted = int(problem.queries.wanted[query])
        self._proxy = int(problem.queries.proxy[query])
        self._bound_ms = float(problem.queries.latency_bound_ms[query])
        self._rate_bps = float(problem.streams.rate_bps[self._wanted])
        self._free_cpu = np.maximum(ledger.cpu_left, 0.0)
        self._free_in = np.maximum(ledger.in_left, 0.0)
        self._free_out = np.maximum(ledger.out_left, 0.0)
        limited = np.isfinite(problem.hosts.cpu)  # what runs on an unlimited host loads it by 0 %
        self._used_cpu = np.where(limited, problem.hosts.cpu, 0.0)
        self._used_cpu[limited] -= ledger.cpu_left[limited]
        self._busiest = shares(self._used_cpu, problem.hosts.cpu).max(initial=0.0)

    def run(self) -> tuple[Candidate | None, Shortage | None]:
        """The best candidate; or, where there is none, what the nearest one lacks."""
        plans = self._plans
        alike = self._bound_ms == inf and self._proxy == NONE
        groups = host_groups(self._ledger, plans, alike)
        maker = RecipeMaker(self._ledger, plans)
        best: Candidate | None = None
        nearest: Shortage | None = None
        seen: set[tuple[int, Recipe]] = set()
        for plan in list_plans(plans):
            for hosts in groups:
                recipe = maker.recipe(plan, int(hosts[0]), self._bound_ms)
                if (int(hosts[0]), recipe) in seen:  # plans differ in what is fetched anyway
                    continue
                seen.add((int(hosts[0]), recipe))
                allowed = self._allowed(recipe, hosts)
                if len(allowed):
                    best = self._better(best, recipe, allowed)
                    if best is None:
                        nearest = self._nearer(nearest, recipe, allowed)
        return best, nearest

    def _allowed(self, recipe: Recipe, hosts: Ints) -> Ints:
        """Where operators are not pinned elsewhere, and the proxy gets the result only once."""
        for pin in self._problem.operators.pinned[list(recipe.operators)].tolist():
            if pin != NONE:
                hosts = hosts[hosts == pin]
        if self._proxy != NONE and self._ledger.available[self._wanted, self._proxy]:
            hosts = hosts[hosts == self._proxy]
        return hosts

    def _better(self, best: Candidate | None, recipe: Recipe, hosts: Ints) -> Candidate | None:
        if self._elsewhere(recipe, int(hosts[0])) is not None:
            return best
        cpu, in_bps, out_bps = self._needs(recipe, int(hosts[0]))
        fits = (
            (cpu <= self._free_cpu[hosts])
            & (in_bps <= self._free_in[hosts])
            & (out_bps <= self._free_out[hosts])
        )
        if not fits.any():
            return best
        prices = self._prices(cpu, in_bps, hosts[fits]) - self._discount(recipe)
        cheapest = int(np.argmin(prices))
        if best is not None and best.price <= prices[cheapest]:
            return best
        return Candidate(int(hosts[fits][cheapest]), recipe, float(prices[cheapest]))

    def _needs(self, recipe: Recipe, host: int) -> tuple[float, float, float]:
        """CPU, bandwidth in and bandwidth out of the host itself."""
        problem = self._problem
        cpu = float(problem.operators.cpu[list(recipe.operators)].sum())
        in_bps = float(problem.streams.rate_bps[[s for _, s in recipe.fetches]].sum())
        return cpu, in_bps, self._serving_bps(host)

    def _serving_bps(self, host: int) -> float:
        """A host hands a stream out once, however many ask for it (II-B)."""
        return 0.0 if (host, self._wanted) in self._ledger.results else self._rate_bps

    def _prices(self, cpu: float, in_bps: float, hosts: Ints) -> Floats:
        problem, weights = self._problem, self._weights
        after = shares(self._used_cpu[hosts] + cpu, problem.hosts.cpu[hosts])
        prices: Floats = (
            weights.network * in_bps / yardsticks(problem).bps
            + weights.cpu * cpu / yardsticks(problem).cpu
            + weights.balance * np.maximum(after, self._busiest)
        )
        return prices

    def _discount(self, recipe: Recipe) -> float:
        """What a rule of reuse takes off the price of the recipe's CPU (O₃)."""
        operators = self._problem.operators
        saved = sum(
            float(operators.cpu[o]) * self._reuse.discount(self._plans, int(operators.output[o]))
            for o in recipe.operators
        )
        return self._weights.cpu * saved / yardsticks(self._problem).cpu if saved else 0.0

    def _elsewhere(self, recipe: Recipe, host: int) -> Shortage | None:
        """What those lack who should send to the host, or take the result from it."""
        hosts, proxy, delay = self._problem.hosts, self._proxy, recipe.delay_ms
        if recipe.shortage is not None:
            return recipe.shortage
        if proxy not in (NONE, host):
            served = self._serving_bps(proxy)
            if self._rate_bps > self._free_in[proxy]:
                free = float(self._free_in[proxy])
                return Shortage("bandwidth in", proxy, self._rate_bps, free)
            if served > self._free_out[proxy]:
                return Shortage("bandwidth out", proxy, served, float(self._free_out[proxy]))
            if self._ledger.link_left is not None:
                free = float(self._ledger.link_left[host, proxy])
                if self._rate_bps > free:
                    return Shortage("link", host, self._rate_bps, free)
            if hosts.latency_ms is not None:
                delay += float(hosts.latency_ms[host, proxy])
        return Shortage("latency", host, delay, self._bound_ms) if delay > self._bound_ms else None

    def _nearer(self, nearest: Shortage | None, recipe: Recipe, hosts: Ints) -> Shortage | None:
        """Of each host the worst shortage, and of all hosts the one whose worst is least."""
        elsewhere = self._elsewhere(recipe, int(hosts[0]))
        cpu, in_bps, out_bps = self._needs(recipe, int(hosts[0]))
        for host in hosts.tolist():
            short = [
                Shortage("cpu", host, cpu, float(self._free_cpu[host])),
                Shortage("bandwidth in", host, in_bps, float(self._free_in[host])),
                Shortage("bandwidth out", host, out_bps, float(self._free_out[host])),
                *([elsewhere] if elsewhere else []),
            ]
            worst = max(short, key=lambda s: s.share)
            if nearest is None or worst.share < nearest.share:
                nearest = worst
        return nearest
