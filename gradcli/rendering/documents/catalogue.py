"""Operations and diagnostic codes as documents, for `ops` and `explain`."""

from __future__ import annotations

from gradcli.rendering.document import Column, Document, Facts, Grid, Line, Style, document
from gradcli.rendering.value_text import inline, jsonable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from gradcli.base.codes import CodeDoc
    from gradcli.rendering.document import Block

REAL_LINE = {"(-inf, inf)": "every real number"}

KINDS = {
    "elementwise": "applied entry by entry, and so is its derivative",
    "linear": "linear in its argument; its derivative is the same operation, in reverse mode its transpose",
    "bilinear": "linear in each of two arguments",
    "structured": "has a derivative rule of its own",
    "composite": "defined by other operations, and differentiated through them",
    "nondifferentiable": "constant in its arguments: its derivative is zero",
}


def operations(primitives: Mapping[str, Any], style: Style) -> Document:
    """`ops`: every operation that a script can call, in alphabetical order."""
    return Document((tidy_operations(primitives), Line("gradcli ops NAME shows one of them.", "note")))


def tidy_operations(primitives: Mapping[str, Any]) -> Grid:
    columns = (
        Column("operation", "code"),
        Column("kind", "text", 2),
        Column("summary"),
        Column("also", "code", 1),
    )
    rows = tuple(
        (name, primitive.kind, primitive.summary, ", ".join(primitive.aliases))
        for name, primitive in sorted(primitives.items())
    )
    return Grid(columns, rows)


def laws(name: str, outcomes: Sequence[Any]) -> Document:
    """`ops NAME --check`: a row for each law."""
    return document(Line(name, "title"), tidy_laws(outcomes))


def tidy_laws(outcomes: Sequence[Any]) -> Grid:
    columns = (Column("", "verdict"), Column("law"), Column("detail"))
    return Grid(columns, tuple((law.result, law.law, law.detail) for law in outcomes))


def operation(primitive: Any, rules: Mapping[str, str], examples: Sequence[tuple[str, Any]], style: Style) -> Document:
    """`ops NAME`: how to call it, what it computes, its derivative, domain and kinks, examples with their values."""
    facts: list[tuple[str, str, str]] = [
        ("form", primitive.form, "code"),
        ("kind", f"{primitive.kind}: {KINDS[primitive.kind]}", "text"),
    ]
    if isinstance(primitive.formula, str) and primitive.formula:
        facts.append(("computes", primitive.formula, "code"))
    facts += ((f"d/d{leaf}", rule, "code") for leaf, rule in rules.items())
    if primitive.aliases:
        facts.append(("also", ", ".join(primitive.aliases), "code"))
    facts += domain_facts([repr(interval) for interval in primitive.domain])
    for position, kink in enumerate(primitive.kinks):
        facts.append(
            (
                "kinks" if position == 0 else "",
                f"{kink.where}: the derivative is taken as {kink.value}",
                "text",
            )
        )
    blocks: list[Block] = [Line(primitive.name, "title"), Line(primitive.summary), Facts(tuple(facts))]
    if examples:
        rows = tuple((text, inline(value, style.digits, 20)) for text, value in examples)
        blocks.append(Grid((Column("example", "code"), Column("value", "text")), rows))
    return document(*blocks)


def domain_facts(intervals: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The domain of an operation: a single row if it is the same for every argument."""
    texts = [REAL_LINE.get(interval, interval) for interval in intervals]
    if len(set(texts)) == 1:
        yield ("domain", texts[0], "text")
        return
    for position, interval in enumerate(texts):
        yield ("domain" if position == 0 else "", f"argument {position + 1}: {interval}", "text")


def operation_fields(
    primitive: Any, rules: Mapping[str, str] | None = None, examples: Sequence[tuple[str, Any]] = ()
) -> dict[str, Any]:
    """One operation for JSON: `form` shows its arguments, `derivatives` has a formula for each where there is one."""
    fields: dict[str, Any] = {
        "name": primitive.name,
        "form": primitive.form,
        "kind": primitive.kind,
        "summary": primitive.summary,
        "formula": primitive.formula or None,
        "aliases": list(primitive.aliases),
        "domain": [repr(interval) for interval in primitive.domain],
        "kinks": [{"where": kink.where, "value": str(kink.value)} for kink in primitive.kinks],
    }
    if rules:
        fields["derivatives"] = dict(rules)
    if examples:
        fields["examples"] = [{"text": text, "value": jsonable(value)} for text, value in examples]
    return fields


def codes(docs: Mapping[str, CodeDoc], style: Style) -> Document:
    """`explain` without a code: the list."""
    return Document(
        (tidy_codes(docs), Line("gradcli explain CODE says what is wrong, the reason, and what to do.", "note"))
    )


def tidy_codes(docs: Mapping[str, CodeDoc]) -> Grid:
    return Grid((Column("code"), Column("title")), tuple((code, doc.title) for code, doc in sorted(docs.items())))


def explanation(code: str, doc: CodeDoc, style: Style) -> Document:
    """`explain CODE`: what it means, the reason, an example, and what to do."""
    return Document(
        (
            Line(f"{code}: {doc.title}", "title"),
            Line(doc.what),
            Line(f"Reason: {doc.why}"),
            Line("Example:", "note"),
            Line("\n".join("    " + line for line in doc.example.splitlines()), "code"),
            Line(f"What to do: {doc.instead}"),
        )
    )


def explanation_fields(code: str, doc: CodeDoc) -> dict[str, Any]:
    """One code for JSON."""
    return {
        "code": code,
        "title": doc.title,
        "what": doc.what,
        "why": doc.why,
        "example": doc.example,
        "instead": doc.instead,
    }
