"""Queries that differ from an earlier one by constants and name are not parsed and bound again.

What was made of a statement is kept as a template under its outline, the types of the constants in
its conditions, and the text of all its other constants. A later statement with the same of these
has the same plan but for the values in its conditions, and they are put in (`bind.holes`).

A template is made when a statement comes for the second time: of most statements there is only one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from thalweg.cql.bind.context import Context
from thalweg.cql.bind.holes import Constants, Holes, OpenPlan, are_in_conditions
from thalweg.cql.bind.queries import bind_typed
from thalweg.cql.bind.statements import Change, check_new
from thalweg.cql.errors import Mistake, Span
from thalweg.cql.lexer import unquoted
from thalweg.cql.outline import Outline, Outlined, outlined
from thalweg.cql.parser import Recalled, parse_at
from thalweg.cql.parser.literals import number, temporal
from thalweg.cql.syntax import NOWHERE, CreateQuery, Literal, Name, Statement
from thalweg.plan.catalog import Catalog, Definition, QueryDef
from thalweg.plan.expr import Lit
from thalweg.plan.shapes import TemplateId, shape_of_plan
from thalweg.plan.types import VARCHAR, SqlType

MOST = 4_096  # outlines and templates; then all are forgotten

Read = Callable[[str], Lit]  # a constant as it is written; raises Mistake
Form = tuple[Read | None, ...]  # how each constant is read; None: it has to be the same
Variant = tuple[SqlType | str, ...]  # of each constant the type, or the text


@dataclass(frozen=True, slots=True)
class Template:
    plan: OpenPlan
    template_id: TemplateId
    from_now: bool
    reads: tuple[tuple[str, Definition], ...]  # what the plan was made for
    behind: int  # characters between the last token and the end of the statement


@dataclass(frozen=True, slots=True)
class Recurring:
    """A statement with a template."""

    name: Name | None
    span: Span
    template: Template
    constants: Constants

    def fits(self, catalog: Catalog) -> bool:
        """Whether names still stand for what they stood for."""
        return all(catalog.find(name) is found for name, found in self.template.reads)

    def change(self, catalog: Catalog, text: str, default_name: str) -> Change:
        """What the statement defines. Raises Mistake."""
        if self.name is not None:
            check_new(self.name, catalog, "query")
        name = default_name if self.name is None else self.name.text
        start, end = self.span
        made = self.template
        plan = made.plan.filled(self.constants)
        written = text[start:end]
        query = QueryDef(name, plan, written, made.from_now, made.template_id)
        return Change(query, text=written)

    def parsed(self, text: str) -> Statement:
        return parse_at(text, self.span[0])


class Templates:
    def __init__(self) -> None:
        self._forms: dict[Outline, Form | None] = {}  # None: seen once
        self._made: dict[tuple[Outline, Variant], Template | None] = {}

    def recall(self, text: str, position: int) -> Recalled[Recurring] | None:
        """The statement that begins here, if there is a template for it."""
        statement = outlined(text, position)
        form = self._forms.get(statement.outline) if statement is not None else None
        if statement is None or form is None:
            return None
        read = _constants(form, statement, text)
        if read is None:
            return None
        constants, variant = read
        template = self._made.get((statement.outline, variant))
        if template is None:
            return None
        span = statement.start, statement.stop - template.behind
        found = Recurring(statement.name, span, template, constants)
        return found, statement.following, statement.is_last

    def learn(self, query: CreateQuery, change: Change, catalog: Catalog, text: str) -> None:
        """From a statement that had no template, and what has become of it."""
        statement = outlined(text, query.span[0])
        if statement is None or (statement.name is None) != (query.name is None):
            return
        if change.warnings:
            return  # each has a place in the text
        if len(self._forms) + len(self._made) >= MOST:
            self._forms.clear()
            self._made.clear()
        outline = statement.outline
        if outline not in self._forms:
            self._forms[outline] = None
            return
        known = self._forms[outline]
        if known is not None:
            read = _constants(known, statement, text)
            assert read is not None, "the parser has read them"
            key = outline, read[1]
            if key not in self._made:
                self._made[key] = None
                return
        form, template = _template(statement, query, catalog, text)
        read = _constants(form, statement, text)
        assert read is not None, "the parser has read them"
        assert isinstance(change.definition, QueryDef)
        assert template.plan.filled(read[0]) == change.definition.plan
        self._forms[outline] = form
        self._made[outline, read[1]] = template


def _constants(form: Form, statement: Outlined, text: str) -> tuple[Constants, Variant] | None:
    """A statement's constants, and what their template is found by; None if one is none."""
    constants: list[Lit | None] = []
    variant: list[SqlType | str] = []
    try:
        for read, (start, end) in zip(form, statement.constants, strict=True):
            if read is None:
                constants.append(None)
                variant.append(text[start:end])
            else:
                constant = read(text[start:end])
                constants.append(constant)
                variant.append(constant.type)
    except Mistake:
        return None
    return constants, tuple(variant)


def _template(
    statement: Outlined, query: CreateQuery, catalog: Catalog, text: str
) -> tuple[Form, Template]:
    """With as many constants left open as can be."""
    places = {end: number for number, (_, end) in enumerate(statement.constants)}
    numbers = {end: number for end, number in places.items() if text[end - 1] != "'"}
    for left_open in (places, numbers, {}):
        holes = Holes(left_open)
        context = Context(catalog, text, holes=holes)
        try:
            plan = bind_typed(query.query, context).node
        except Mistake:
            continue  # the value says what the constant is, such as a day beside a DATE
        if are_in_conditions(plan):
            break
    form = tuple(
        _reading(text, place, holes.literals.get(number))
        for number, place in enumerate(statement.constants)
    )
    template = Template(
        OpenPlan(plan),
        TemplateId(shape_of_plan(plan)),
        query.from_now,
        tuple(context.findings.reads.items()),
        statement.stop - query.span[1],
    )
    return form, template


def _reading(text: str, place: Span, literal: Literal | None) -> Read | None:
    """How a constant that is left open is read, as the parser does."""
    if literal is None:
        return None
    if text[place[0]] != "'":
        return partial(_number, "-" if literal.span[0] < place[0] else "")
    return _string if literal.type == VARCHAR else partial(_temporal, str(literal.type))


def _number(sign: str, text: str) -> Lit:
    return _lit(number(sign + text, NOWHERE))


def _string(text: str) -> Lit:
    return Lit(unquoted(text), VARCHAR)


def _temporal(kind: str, text: str) -> Lit:
    return _lit(temporal(kind, unquoted(text), NOWHERE))


def _lit(literal: Literal) -> Lit:
    return Lit(literal.value, literal.type)
