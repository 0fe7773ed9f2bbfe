"""Reviews on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from lpf.cli.safe_output import one_line, quoted
from lpf.cli.terminal import (
    count,
    distribution,
    indented,
    number,
    percent,
    print_pairs,
    print_table,
    table,
    when,
)
from lpf.metrics.agreement import Alpha
from lpf.review.agreement import Agreement, AgreementOptions
from lpf.review.applying import ApplyOutcome
from lpf.review.blind import BlindCase, BlindItem
from lpf.review.feedback import AnswerFeedback, in_order
from lpf.review.queue import ReviewQueue
from lpf.review.records import Review
from lpf.review.reviews import Revealed

UNSURE = "unsure"
LEFT_OUT_SHOWN = 20


def show_queue(output: Console, queue: ReviewQueue) -> None:
    if not queue.answers:
        output.print("No answer is waiting for a review.")
    else:
        rows = [
            [
                one.record_id,
                one.entity_id,
                one.predicate,
                number(one.gain, ".3f"),
                number(one.bits, ".2f"),
                percent(one.confidence),
                number(one.conflict),
                str(one.reviews),
                one.picked,
            ]
            for one in queue.answers
        ]
        numbers = ("gain", "bits", "confidence", "conflict", "reviews")
        names = ("record", "entity", "predicate", *numbers, "by")
        output.print(table(names, rows, right=numbers, optional=("by", "reviews", "predicate")))
    left = [f"{queue.waiting:,} waiting", f"{queue.reviewed:,} reviewed"]
    if queue.known:
        left.append(f"{queue.known:,} known from facts, or without an answer")
    output.print(Text("; ".join(left), style="dim"))
    if queue.answers:
        first = queue.answers[0]
        asked = f"{quoted(first.entity_id)} {quoted(first.predicate)}"
        words = f"first: lpf review blind {asked}"
        output.print(Text(one_line(words), style="dim"))


def show_feedback(output: Console, found: AnswerFeedback) -> None:
    value = "" if found.value is None else f": {found.value}"
    head = f"{found.about}  {found.entity_id} · {found.predicate}: {found.status}{value}"
    output.print(Text(one_line(head), style="bold"))
    print_pairs(output, _lines(found))


def show_reviews(output: Console, found: AnswerFeedback | None) -> None:
    """The section of an answer that has reviews."""
    if found is None or not (found.reviews or found.adjudications):
        return
    value = "" if found.value is None else f", {found.value}"
    output.print()
    output.print(Text(one_line(f"Reviews: {found.status}{value}"), style="bold"))
    print_pairs(output, _lines(found))


def _lines(found: AnswerFeedback) -> Iterator[tuple[str, str]]:
    """What was said, by the record that says it."""
    for one in in_order([found]):
        parts = [f"{when(one.timestamp)}, {one.reviewer} {one.words}"]
        if isinstance(one, Review):
            parts += one.judged
            if one.revised_top is not None:
                best, probability = one.revised_top
                parts.append(f"revised answer {best}, {percent(probability)}")
        if one.is_erased:
            parts.append("comment erased")
        elif one.comment is not None:
            parts.append(f"“{one.comment}”")
        if one.record_id in found.withdrawn:
            parts.append("withdrawn")
        yield one.record_id, "; ".join(parts)


def show_recorded(output: Console, review: Review, found: AnswerFeedback) -> None:
    words = f"{review.record_id}: {review.reviewer} {review.words}, about {review.about}."
    output.print(Text(one_line(words)))
    if review.replaces is not None:
        output.print(f"  the earlier review {review.replaces} no longer counts")
    if review.follows is not None:
        output.print(f"  after the blind pass {review.follows}")
    if review.revised is not None:
        output.print("  the answer under these judgements:")
        output.print(indented(distribution(review.revised, output.width)))
    for note in review.notes:
        output.print(Text(one_line(f"  {note}")))
    status = found.status if found.value is None else f"{found.status}, {found.value}"
    output.print(Text(one_line(f"  the answer is {status}"), style="dim"))


def show_blind_case(output: Console, case: BlindCase) -> None:
    head = f"{case.entity_id} · {case.predicate}"
    output.print(Text(one_line(head), style="bold"))
    pairs = [("question", case.description)] if case.description else []
    pairs.append(("values", ", ".join(case.values)))
    pairs += [("known", f"{name} = {value}") for name, value in case.facts.items()]
    print_pairs(output, pairs)
    output.print()
    for item in case.items:
        output.print(Text(one_line(_item_head(item, case)), style="bold"))
        claim = [] if item.claim is None else [("claim", item.claim)]
        text = f"({item.missing})" if item.text is None else item.text
        print_pairs(output, [*claim, ("text", text)])


def _item_head(item: BlindItem, case: BlindCase) -> str:
    parts = [item.evidence_id]
    if item.predicate != case.predicate:
        parts.append(f"about {item.predicate}")
    parts += [one for one in (item.source, item.date) if one]
    if item.credibility is not None:
        parts.append(f"credibility {item.credibility:.2f}")
    return ", ".join(parts)


def show_revealed(output: Console, shown: Revealed) -> None:
    blind = shown.blind
    head = f"{blind.entity_id} · {blind.predicate}: {shown.value}"
    output.print(Text(one_line(head), style="bold"))
    output.print(indented(distribution(shown.distribution, output.width)))
    agrees = {True: "the same", False: "another value", None: "no value"}[shown.agrees]
    said = f"  you said {blind.value or UNSURE}, blind ({blind.record_id}): {agrees}"
    output.print(Text(one_line(said)))
    output.print(Text(f"  lpf explain {shown.record_id} shows why", style="dim"))


def show_agreement(output: Console, found: Sequence[Agreement], options: AgreementOptions) -> None:
    if not found:
        which = "reviews" if options.with_open else "blind passes"
        output.print(f"There are no {which} to compare yet.")
        return
    for one in found:
        rows = [_alpha_row("all reviewers", one.overall)]
        rows += [_alpha_row(" and ".join(pair), alpha) for pair, alpha in one.pairs.items()]
        numbers = ("alpha", "95 % interval", "answers", "values")
        print_table(output, one.predicate, table(("reviewers", *numbers), rows, right=numbers))
        given = ", ".join(f"{name} {given:,}" for name, given in one.reviewers.items())
        output.print(indented(Text(one_line(f"values given: {given}"), style="dim")))
    which = "last reviews" if options.with_open else "blind passes"
    words = f"{which}; interval from {options.draws:,} draws of answers, seed {options.seed}"
    output.print(Text(words, style="dim"))


def _alpha_row(who: str, found: Alpha) -> list[str]:
    interval = ""
    if found.low is not None and found.high is not None:
        interval = f"{found.low:.3f} to {found.high:.3f}"
    alpha = "not defined" if found.alpha is None else f"{found.alpha:.3f}"
    return [who, alpha, interval, f"{found.units:,}", f"{found.ratings:,}"]


def show_applied(output: Console, outcome: ApplyOutcome) -> None:
    made = "would become" if outcome.dry_run else "became"
    if outcome.applied:
        rows = [
            [
                one.record_id,
                one.entity_id,
                one.predicate,
                one.value,
                percent(one.confidence),
                _what(one.fact_id, len(one.items)),
            ]
            for one in outcome.applied
        ]
        names = ("record", "entity", "predicate", "value", "confidence", "")
        output.print(table(names, rows, right=("confidence",)))
    answers = count(len(outcome.applied), "answer")
    output.print(f"{answers} {made} {outcome.target}; {outcome.unchanged:,} unchanged.")
    _show_left_out(output, outcome.left_out)


def _what(fact_id: int | None, items: int) -> str:
    if fact_id is not None:
        return f"fact {fact_id}"
    return count(items, "item") if items else ""


def _show_left_out(output: Console, left_out: Mapping[str, str]) -> None:
    if not left_out:
        return
    output.print(f"Left out: {len(left_out):,}")
    for name, why in list(left_out.items())[:LEFT_OUT_SHOWN]:
        output.print(indented(Text(one_line(f"{name}: {why}"))))
    if len(left_out) > LEFT_OUT_SHOWN:
        output.print(f"  and {len(left_out) - LEFT_OUT_SHOWN:,} more; --json lists all")
