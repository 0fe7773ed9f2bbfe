"""Many answers on one page: how sure they are, and some of each kind with their waterfalls.

The page needs no other file and runs no script: the bins of the histogram are links to examples
further down. Only the examples are explained, so a report on many questions takes little longer
than answering them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lpf.report.case_content import CaseContent, case_of_result, texts_by_id
from lpf.report.case_file import (
    HOW_TO_READ,
    NAME_CHARACTERS,
    SHEET,
    answer_sentence,
    waterfall_figure,
)
from lpf.report.foreign_text import beginning, shown
from lpf.report.page import (
    PageColumn,
    PageRow,
    definitions,
    glance,
    make_page,
    paragraph,
    percent,
    section,
    table,
)
from lpf.report.small_charts import histogram
from lpf.results import QueryResult

if TYPE_CHECKING:
    from lpf.workspace import Workspace

BINS: Final = 10
PER_BIN: Final = 2
TEXT_CHARACTERS: Final = 300
MOST_TEXTS: Final = 8  # of an example
MOST_VALUES: Final = 60  # rows of the table
ABOUT = (
    "How sure the answers are. Each bar leads to examples. Of well-calibrated answers with 70 to "
    "80 %, about three quarters are right."
)


@dataclass(frozen=True)
class ConfidenceBin:
    """The answers with a confidence from ``low`` to ``high``: their number, and examples."""

    low: float
    high: float
    count: int
    examples: tuple[CaseContent, ...]

    @property
    def name(self) -> str:
        return f"{100 * self.low:.0f} to {100 * self.high:.0f} %"


@dataclass(frozen=True)
class ValueCount:
    """How many answers have this value, and how sure they are on average."""

    predicate: str
    value: str
    count: int
    mean_confidence: float


@dataclass(frozen=True)
class AnswersContent:
    """What the report shows: ``bins`` in order, those below the first answer left out.
    ``without_answer`` counts questions that nothing counts for, ``deferred`` those whose answer
    was held back, which are among the others too."""

    bins: tuple[ConfidenceBin, ...]
    values: tuple[ValueCount, ...]
    without_answer: int = 0
    deferred: int = 0

    @property
    def count(self) -> int:
        return sum(one.count for one in self.bins)


def answers_content(
    workspace: Workspace, results: Iterable[QueryResult], *, per_bin: int = PER_BIN
) -> AnswersContent:
    """Count the answers and explain the first ``per_bin`` of each bin of confidence. The results
    are read once; only the examples are kept."""
    counts = [0] * BINS
    examples: list[list[CaseContent]] = [[] for _ in range(BINS)]
    sums: dict[tuple[str, str], tuple[int, float]] = {}
    without = deferred = 0
    for result in results:
        value, confidence = result.top_value, result.confidence
        if value is None or confidence is None:
            without += 1
            continue
        deferred += result.is_deferred
        place = min(int(BINS * confidence), BINS - 1)
        counts[place] += 1
        number, total = sums.get((result.predicate, value), (0, 0.0))
        sums[result.predicate, value] = (number + 1, total + confidence)
        if len(examples[place]) < per_bin:
            examples[place].append(case_of_result(workspace, result, with_proof=False))
    first = next((place for place, count in enumerate(counts) if count), BINS)
    return AnswersContent(
        tuple(
            ConfidenceBin(place / BINS, (place + 1) / BINS, counts[place], tuple(examples[place]))
            for place in range(first, BINS)
        ),
        tuple(
            ValueCount(predicate, value, number, total / number)
            for (predicate, value), (number, total) in sorted(sums.items())
        ),
        without,
        deferred,
    )


def answers_report(content: AnswersContent, title: str = "Answers") -> str:
    """The whole page as HTML."""
    return make_page(title, _parts(content), sheet=SHEET)


def _parts(content: AnswersContent) -> Iterator[str]:
    yield glance(list(_at_a_glance(content)))
    if not content.count:
        yield paragraph("No question has an answer: no item and no fact counts for any.")
        return
    bins = content.bins
    links = [f"bin-{place}" if one.examples else "" for place, one in enumerate(bins)]
    names, counts = [one.name for one in bins], [one.count for one in bins]
    yield section("Confidence", paragraph(ABOUT), histogram(names, counts, links))
    yield section("Values", _values(content))
    examples = f"Why each answer is what it is. {HOW_TO_READ}"
    yield section("Examples", paragraph(examples))
    for one, link in zip(bins, links, strict=True):
        if link:
            yield section(f"{one.name} sure", *map(_example, one.examples), id=link)
    yield "<footer>This page holds texts of the evidence, as they were when it was made.</footer>"


def _at_a_glance(content: AnswersContent) -> Iterator[tuple[str, str]]:
    yield "answers", f"{content.count:,}"
    if content.without_answer:
        yield "questions without an answer", f"{content.without_answer:,}"
    if content.deferred:
        yield "of the answers, deferred", f"{content.deferred:,}"
    if content.count:
        total = sum(one.count * one.mean_confidence for one in content.values)
        yield "mean confidence", percent(total / content.count)


def _values(content: AnswersContent) -> str:
    columns = (
        PageColumn("predicate", "name"),
        PageColumn("value", "name"),
        PageColumn("answers"),
        PageColumn("mean confidence"),
    )
    most = sorted(content.values, key=lambda one: -one.count)[:MOST_VALUES]
    rows = [
        PageRow(
            [
                beginning(one.predicate, NAME_CHARACTERS),
                beginning(one.value, NAME_CHARACTERS),
                f"{one.count:,}",
                percent(one.mean_confidence),
            ]
        )
        for one in most
    ]
    return table("Answers by value, the most frequent first", columns, rows)


def _example(case: CaseContent) -> str:
    explanation = case.explanation
    heading = beginning(f"{explanation.entity_id} · {explanation.predicate}", NAME_CHARACTERS)
    ids = [item.name for item in explanation.items]
    texts = [
        (beginning(name, NAME_CHARACTERS), beginning(words, TEXT_CHARACTERS))
        for name, words in texts_by_id(case.texts, ids[:MOST_TEXTS]).items()
    ]
    if len(ids) > MOST_TEXTS:
        texts.append(("more", f"{len(ids) - MOST_TEXTS:,} other items"))
    claims = [("claim", beginning(claim, TEXT_CHARACTERS)) for claim in case.claims]
    record = explanation.record_id
    pairs = [*claims, *texts, *([] if record is None else [("record", record)])]
    figure = waterfall_figure(case, heading)
    return (
        f'<article class="example">\n<h3 dir="auto">{shown(heading)}</h3>\n'
        f"<p>{answer_sentence(case)}</p>\n{figure}\n{definitions(pairs)}\n</article>"
    )
