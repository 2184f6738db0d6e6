"""EXPLAIN of sharing: a site's groups, the one of a query, and why two queries share or do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from thalweg.engine.shared.explain.in_common import in_common
from thalweg.engine.shared.explain.tree import Branch
from thalweg.engine.shared.groups.cost_model import Sharing
from thalweg.engine.shared.groups.regrouping import is_sharable
from thalweg.engine.site.explanation import Explanation
from thalweg.engine.site.groups import FamilyStatus, GroupStatus
from thalweg.engine.site.savings import Estimate, Measurement
from thalweg.plan.catalog import QueryDef
from thalweg.sharing.core import NotNormal
from thalweg.sharing.normal import normalise
from thalweg.sharing.why import why

if TYPE_CHECKING:
    from thalweg.engine.site.site import Site

SHOWN_FAMILIES = 5


def explain_groups(groups: Sequence[GroupStatus]) -> Explanation:
    text = "\n\n".join(_branch(g).text() for g in groups)
    return Explanation(text or "no groups: every query runs by itself", [asdict(g) for g in groups])


def explain_group(group: GroupStatus) -> Explanation:
    return Explanation(_branch(group).text(), asdict(group))


def explain_sharing(site: Site, query: QueryDef) -> Explanation:
    """The group that answers a standing query, or why none does."""
    group = site.status.group_of(query.name)
    if group is None:
        reason = _why_alone(site, query)
        text = f"{query.name} runs by itself: {reason}"
        return Explanation(text, {"query": query.name, "group": None, "reason": reason})
    found = _branch(group)
    return Explanation(found.text(), {"query": query.name, "group": asdict(group)})


def explain_why(site: Site, a: QueryDef, b: QueryDef) -> Explanation:
    """What the forms of two queries say, and then what is the case."""
    forms = why(normalise(a.plan), normalise(b.plan), (a.name, b.name))
    sentences = [*forms, *in_common(site.engine.plan, _runs(site, a, b)), _now(site, a, b)]
    group_of = site.engine.roster.group_of
    data: dict[str, Any] = {
        "queries": [a.name, b.name],
        "groups": [group_of.get(a.name), group_of.get(b.name)],
        "why": sentences,
    }
    return Explanation("\n".join(sentences), data)


def _runs(site: Site, a: QueryDef, b: QueryDef) -> tuple[str, str]:
    group_of = site.engine.roster.group_of
    return group_of.get(a.name, a.name), group_of.get(b.name, b.name)


def _now(site: Site, a: QueryDef, b: QueryDef) -> str:
    group_of = site.engine.roster.group_of
    sizes = Counter(group_of.values())
    first, second = group_of.get(a.name), group_of.get(b.name)
    if first is not None and first == second:
        return f"Now: both are answered by {first}, of {sizes[first]} queries."
    told = [
        f"{q.name} is answered by {home}, of {_plural(sizes[home])}"
        if home is not None
        else f"{q.name} runs by itself ({_why_alone(site, q)})"
        for q, home in ((a, first), (b, second))
    ]
    return f"Now: {'; '.join(told)}."


def _why_alone(site: Site, query: QueryDef) -> str:
    running = site.engine.roster.queries.get(query.name)
    if running is None:
        return "it is parked"
    normal = normalise(query.plan)
    if isinstance(normal, NotNormal):
        return normal.reason
    if site.engine.grouping.sharing is Sharing.NEVER:
        return "sharing is off"
    if not is_sharable(running):
        return "no query with the same DISTINCT, GROUP BY or HAVING began together with it"
    return "no other is like it so far, or has come to the same instant, or a group would not pay"


# --- a group as text


def _branch(group: GroupStatus) -> Branch:
    families = group.families[:SHOWN_FAMILIES]
    left = len(group.families) - len(families)
    more = (Branch(f"and {left} more ways to ask"),) if left else ()
    title = (
        f"{group.name} answers {_plural(group.members)}"
        if group.members
        else f"{group.name} answers nobody yet: it is on its way to the present"
    )
    return Branch(title, tuple(_remarks(group)), (*map(_family_branch, families), *more))


def _remarks(group: GroupStatus) -> Iterator[str]:
    yield from group.representative.splitlines()
    if group.above:
        yield "then for each member, all at once:"
        yield from (f"  {line}" for line in group.above.splitlines())
    if group.windows > 1:
        more = f" and {group.windows - len(group.first_windows)} more"
        listed = "; ".join(group.first_windows)
        yield f"windows: {listed}{more if group.windows > len(group.first_windows) else ''}"
    if group.members:
        share = f"{group.cost_s / group.members:.2g} s a query"
        yield f"cost since the start: {group.cost_s:.3g} s, {share}"
    yield from _savings(group.members, group.measured, group.estimated)


def _savings(
    members: int, measured: Measurement | None, estimated: Estimate | None
) -> Iterator[str]:
    if measured is not None:
        what = "saves" if measured.saved >= 0 else "loses"
        yield (
            f"measured: {what} {abs(measured.saved):.0%} of the time; a tuple costs "
            f"{_time(measured.group_s)} for all, and {members} × {_time(measured.alone_s)} "
            f"by themselves ({_plural(measured.queries)} measured)"
        )
    if estimated is not None:
        yield (
            f"estimated: {estimated.shared_rows_per_s:.3g} rows/s in place of "
            f"{estimated.alone_rows_per_s:.3g}, of {estimated.shared_tuples_per_s:.3g} tuples/s "
            f"in place of {estimated.alone_tuples_per_s:.3g}"
        )


def _family_branch(family: FamilyStatus) -> Branch:
    found = f"found by {', '.join(family.looked_up)}" if family.looked_up else "every row matches"
    checked = f", then {', '.join(family.checked)}" if family.checked else ""
    rest = f", then {family.residuals} other conditions" if family.residuals else ""
    title = f"{_plural(family.members)}: {found}{checked}{rest}"
    members = tuple(Branch(m.name, tuple(m.profile.splitlines())) for m in family.first)
    left = family.members - len(members)
    return Branch(title, (), (*members, *((Branch(f"and {left:,} more"),) if left else ())))


def _time(seconds: float) -> str:
    unit, name = (1e-3, "ms") if seconds >= 1e-3 else (1e-6, "µs")
    return f"{seconds / unit:.3g} {name}"


def _plural(count: int) -> str:
    return f"{count:,} query" if count == 1 else f"{count:,} queries"
