"""Many texts at once, every statement for itself: what is wrong is listed, the rest stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from thalweg.api.access.access import TooFast
from thalweg.api.changes import changes_json, verb_of
from thalweg.api.execute import Executes, execute
from thalweg.api.pieces import Piece
from thalweg.api.problems import diagnostic_json
from thalweg.cql import CqlError, Diagnostic, compile_each
from thalweg.cql.errors import FOLLOWS, Mistake, was_to_be_made
from thalweg.cql.parser import parse_each
from thalweg.engine.shared.replacing import CannotReplace
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.site import NotAtOnce, Site, SiteError
from thalweg.engine.site.scripts import CompileEach, Script, Text
from thalweg.engine.sources.errors import SourceError
from thalweg.plan.nodes import PlanError
from thalweg.runtime.trust import Denied


@dataclass(slots=True)
class Outcome:
    """What has become of a piece's statements."""

    queries: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)  # what was done, in order
    notes: list[str] = field(default_factory=list)  # about statements that change nothing
    written: int = 0  # statements that changed rows
    warnings: list[dict[str, Any]] = field(default_factory=list)
    notices: list[dict[str, Any]] = field(default_factory=list)  # on history that is not there
    errors: list[dict[str, Any]] = field(default_factory=list)  # one for each that is not done

    def add(self, site: Site, script: Script, piece: Piece) -> None:
        self.queries += [q.name for q in script.queries]
        self.created += [c.definition.name for c in script.changes if verb_of(c) == "created"]
        self.dropped += [c.definition.name for c in script.changes if c.dropped]
        self.changes += changes_json(script)
        self.notes += script.notes
        self.written += len(script.writes)
        self.warnings += _placed(script.warnings, piece)
        self.notices += [asdict(n) for n in site.notices(script.queries)]
        self.errors += _placed(script.errors, piece)


@runtime_checkable
class ExecutesEach(Executes, Protocol):
    def execute_each(self, texts: Sequence[Text], compiler: CompileEach) -> Sequence[Script]: ...


def submit_each(site: Site, pieces: Sequence[Piece], runs: Executes | None = None) -> list[Outcome]:
    """All pieces in one transaction, where who executes them can; an outcome for each. `runs` is
    the site itself, or its node."""
    runs = runs or site
    texts = [Text(p.cql, p.base) for p in pieces]
    outcomes = [Outcome() for _ in pieces]
    if not isinstance(runs, ExecutesEach):
        for outcome, piece in zip(outcomes, pieces, strict=True):
            _one_by_one(site, runs, piece, outcome)
        return outcomes
    try:
        scripts = runs.execute_each(texts, compile_each)
    except (NotAtOnce, SourceError, PlanError, SinkError, CannotReplace, Denied):
        # One of them can't be registered though its text is right: each has to go by itself.
        for outcome, piece in zip(outcomes, pieces, strict=True):
            _one_by_one(site, runs, piece, outcome)
        return outcomes
    for outcome, script, piece in zip(outcomes, scripts, pieces, strict=True):
        outcome.add(site, script, piece)
    return outcomes


def _one_by_one(site: Site, runs: Executes, piece: Piece, outcome: Outcome) -> None:
    statements, mistakes = parse_each(piece.cql)
    outcome.errors += _placed([m.diagnostic(piece.cql) for m in mistakes], piece)
    for statement in statements:
        start, end = statement.span
        # Behind as much space as there is before it in the piece, so that places stay.
        text = re.sub(r"[^\n]", " ", piece.cql[:start]) + piece.cql[start:end]
        try:
            outcome.add(site, execute(runs, text, name=piece.name, folder=piece.base), piece)
            continue
        except CqlError as error:
            found = [_following(d, piece.cql[:start]) for d in error.diagnostics]
        except (SiteError, PlanError, CannotReplace, Denied, TooFast) as error:
            found = [Mistake(str(error), (start, end)).diagnostic(text)]
        outcome.errors += _placed(found, piece)


def _following(diagnostic: Diagnostic, before: str) -> Diagnostic:
    """What only fails because an earlier statement did says so."""
    unknown = re.fullmatch(r'there is no [a-z, ]+ "(.+)"', diagnostic.message)
    if unknown is not None and was_to_be_made(unknown[1], before):
        return replace(diagnostic, hint=FOLLOWS)
    return diagnostic


def _placed(diagnostics: Sequence[Diagnostic], piece: Piece) -> list[dict[str, Any]]:
    return [diagnostic_json(d, piece.cql, piece.name, piece.first_line) for d in diagnostics]
