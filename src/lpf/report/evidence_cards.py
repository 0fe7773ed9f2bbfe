"""One card per evidence item, with its copies: what it is, what it says and what it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lpf.explain import AnswerExplanation, ItemPart
from lpf.explain.weight_reasons import listed_reasons
from lpf.report.case_content import CaseContent, CaseText, shown_text
from lpf.report.foreign_text import beginning, isolated, shown
from lpf.report.page import section
from lpf.report.waterfall import ItemGroup, bits_text, item_groups, rivals, share

TEXT_CHARACTERS: Final = 1500
NAME_CHARACTERS: Final = 80


def cards(case: CaseContent) -> Iterator[str]:
    """A section with all items, those that count most first. Their ids on the page are ``item-1``
    and so on."""
    groups = item_groups(case.explanation)
    if not groups:
        return
    body = "".join(_card(case, group, f"item-{number}") for number, group in enumerate(groups, 1))
    yield section("Evidence", f'<div class="cards">\n{body}</div>')


def _card(case: CaseContent, group: ItemGroup, place: str) -> str:
    explanation = case.explanation
    first, *copies = group.parts
    text = case.texts.get(first.name, CaseText(missing="not in this store"))
    facts = [*_origin(case, first, text), *_effects(explanation, first)]
    if copies:
        names = ", ".join(isolated(beginning(one.name, NAME_CHARACTERS)) for one in copies)
        facts.append(("copies", f"{names}: together with this item they count once"))
    lines = "".join(f"<div><dt>{name}</dt><dd>{words}</dd></div>\n" for name, words in facts)
    shade = _shade(group)
    kind = "gone" if text.text is None else "words"
    return (
        f'<article class="card{shade}" id="{place}">\n<h3>'
        f"{isolated(beginning(first.name, NAME_CHARACTERS))}"
        f'<span class="bits">{_badge(explanation, group)}</span></h3>\n'
        f'<p class="{kind}" dir="auto">{_words(text)}</p>\n<dl>\n{lines}</dl>\n</article>\n'
    )


def _shade(group: ItemGroup) -> str:
    if group.says_nothing:
        return " silent"
    return " contrary" if group.bits is not None and group.bits < 0 else ""


def _badge(explanation: AnswerExplanation, group: ItemGroup) -> str:
    pair = rivals(explanation)
    if pair is None:
        return ""
    if group.bits is None:
        return "cannot be known from the record alone"
    if group.says_nothing:
        return f"says nothing ({bits_text(group.bits)} bits)"
    if group.bits != group.bits:
        return bits_text(group.bits)
    value = pair[0] if group.bits > 0 else pair[1]
    return f"{bits_text(abs(group.bits))} bits for {isolated(beginning(value, 40))}"


def _words(text: CaseText) -> str:
    words = shown_text(text)
    if len(words) <= TEXT_CHARACTERS:
        return shown(words)
    more = f" (the first {TEXT_CHARACTERS:,} of {len(words):,} characters)"
    return f'{shown(words[:TEXT_CHARACTERS])}…<span class="more">{more}</span>'


def _origin(case: CaseContent, item: ItemPart, text: CaseText) -> Iterator[tuple[str, str]]:
    if text.claim is not None and len(case.claims) > 1:
        yield "claim", isolated(beginning(text.claim, TEXT_CHARACTERS))
    if text.source is not None:
        yield "source", isolated(beginning(text.source, NAME_CHARACTERS))
    if text.date is not None:
        yield "date", shown(text.date)
    credibility = "not known" if item.credibility is None else f"{item.credibility:.2f}"
    yield "credibility", credibility
    if text.is_replaced:
        yield "version", "the one that was read; the item was changed since"


def _effects(explanation: AnswerExplanation, item: ItemPart) -> Iterator[tuple[str, str]]:
    values = explanation.values
    if item.says is not None:
        best = int(item.says.argmax())
        said = isolated(beginning(values[best], NAME_CHARACTERS))
        yield "says", f"{said}, {share(float(item.says[best]))}"
    if item.without is not None:
        top = explanation.ranked[0]
        new = values[int(item.without.argmax())]
        left = isolated(beginning(new, NAME_CHARACTERS))
        changed = " <strong>(another answer)</strong>" if new != top else ""
        yield "without it", f"{left}, {share(float(item.without.max()))}{changed}"
    yield "weight", _weight(item)


def _weight(item: ItemPart) -> str:
    """The weight, and what makes it other than 1."""
    reasons = listed_reasons(item)
    because = f": {reasons}" if reasons else ""
    return shown(f"{item.weight.total:.2f}{because}")
