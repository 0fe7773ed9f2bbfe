"""A QueryResult for people: the answer, what it rests on, how sure it is, where it is recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Console, RenderableType
from rich.text import Text

from lpf.cli.terminal import (
    count,
    distribution,
    indented,
    number,
    percent,
    print_pairs,
    print_table,
    start_of,
    table,
    when,
)
from lpf.combine.uncertainty import entropy
from lpf.items import Items
from lpf.orchestrator.inference import NOTHING
from lpf.results import STAGES, FactUsed, LeftOut, QueryResult, none_counts
from lpf.storage.values import from_micros
from lpf.types import FloatArray

WIDE = 100  # from so many columns on there is room for bars beside the numbers
PUSH_WIDTH = 8
ERASED = "(erased)"

METHODS = {"spn": "the circuit", "learned": "learned weights", "average": "the average"}
DOUBTS = ((0.1, "hardly any"), (0.4, "little"), (0.8, "much"), (1.1, "nearly all there can be"))
CONFLICTS = (
    (0.02, "the items agree"),
    (0.15, "the items mostly agree"),
    (0.4, "the items disagree"),
    (1.1, "the items contradict each other"),
)
AUDITS = {"pending": "pending: it is written in the background", "off": "not recorded"}


def show_answer(
    output: Console,
    result: QueryResult,
    texts: Mapping[str, str],
    origins: Mapping[str, str] | None = None,
    near: Sequence[str] | None = None,
) -> None:
    """``texts`` are those of the items by id; an item whose text is gone is shown without. With
    ``origins``, which say where texts are from and of when, they are shown whole. ``near`` is given
    where nothing at all names the entity, and has the names that are like its own."""
    output.print(
        Text.assemble(f"{result.entity_id} · {result.predicate}: ", (_said(result), "bold"))
    )
    for line in _rests_on(result, near):
        output.print(indented(Text(line, style="dim")))
    output.print()
    output.print(indented(distribution(result.distribution, output.width)))
    output.print()
    used, left_out = result.evidence, _left_out(result)
    if used:
        _show_evidence(output, result, used, texts, origins)
    if left_out:
        output.print(indented(Text(left_out, style="dim")))
    if used or left_out:
        output.print()
    if result.facts and result.source != "canonical":
        output.print(Text("Known facts", style="bold"))
        print_pairs(output, [(fact.predicate, _fact(fact)) for fact in result.facts])
        output.print()
    print_pairs(output, _closing(result))


def _said(result: QueryResult) -> str:
    """The answer; a prior is none."""
    if result.source == "none":
        return "nothing is known"
    return f"{result.top_value}, {percent(result.confidence)}"


def _rests_on(result: QueryResult, near: Sequence[str] | None) -> list[str]:
    """What answered, in words."""
    if result.source == "canonical":
        fact = result.facts[0]
        return [f"a known fact answers: confidence {fact.confidence:g}, {_since(fact)}"]
    if result.source == "none":
        return _why_nothing(result, near)
    if result.evidence is None:
        return [f"the circuit, from {count(len(result.facts), 'known fact')} alone"]
    used = result.evidence
    parts = [f"{len(used)} of {count(used.considered, 'item')}"]
    if result.facts:
        parts.append(count(len(result.facts), "known fact"))
    return [f"{result.options.mode} mode: {METHODS[result.method]}, from {' and '.join(parts)}"]


def _why_nothing(result: QueryResult, near: Sequence[str] | None) -> list[str]:
    left_out = result.left_out
    if left_out is not None and left_out.count:
        return [
            none_counts(left_out, result.options) + _remedy(result, left_out),
            "no fact counts either: this is the prior",
        ]
    if near is None:
        return [f"no item about {result.predicate} and no fact counts: this is the prior"]
    lines = [f"no item and no fact names {result.entity_id!r}: this is the prior"]
    return [*lines, f"did you mean {' or '.join(near)}?"] if near else lines


def _show_evidence(
    output: Console,
    result: QueryResult,
    used: Items,
    texts: Mapping[str, str],
    origins: Mapping[str, str] | None,
) -> None:
    pushes = push(result, used)
    title, wide = "Evidence", output.width >= WIDE
    if pushes is not None:
        title += f": what each item adds to {result.top_value} against {runner_up(result)}, in nats"
    columns = _evidence_columns(result, used, pushes, wide)
    below: list[RenderableType] = []
    if origins is None:
        columns["text"] = [start_of(texts.get(name, ERASED)) for name in used.ids]
    else:
        below = [_whole(texts.get(name, ERASED), origins.get(name)) for name in used.ids]
    rows = list(zip(*columns.values(), strict=True))
    right = ("adds", "weight", "credible")
    made = table(list(columns), rows, right=right, flexible="text", below=below)
    print_table(output, title, made)


def _evidence_columns(
    result: QueryResult, used: Items, pushes: FloatArray | None, wide: bool
) -> dict[str, list[str | Text]]:
    copied = bool((used.groups >= 0).any())
    columns: dict[str, list[str | Text]] = {"item": list(used.ids)}
    if used.potential is not None:
        columns["says"] = [_says(result, row) for row in used.potential]
    if pushes is not None:
        columns["adds"] = [number(value, "+.2f") for value in pushes.tolist()]
        if wide:
            columns["      "] = _push_bars(pushes)
    columns["weight"] = [number(value) for value in used.weight.tolist()]
    columns["credible"] = [number(value) for value in used.credibility.tolist()]
    if copied:
        columns["copies"] = [f"#{group + 1}" if group >= 0 else "" for group in used.groups]
    return columns


def _whole(text: str, origin: str | None) -> RenderableType:
    """A text as it is, and where it is from."""
    lines = Text(text.strip(), overflow="fold")
    if origin is not None:
        lines.append(f"\n{origin}", style="dim")
    return indented(lines)


def push(result: QueryResult, used: Items) -> FloatArray | None:
    """What each item adds to the top value against the runner-up, in nats, [K]; None where there
    are no contributions, or only one value."""
    if used.contributions is None or len(result.values) < 2:
        return None
    top, second = (result.values.index(name) for name in (result.top_value, runner_up(result)))
    with np.errstate(invalid="ignore"):  # an item may rule out both: -inf - -inf
        return np.asarray(used.contributions[:, top] - used.contributions[:, second])


def runner_up(result: QueryResult) -> str:
    others = [value for value in result.values if value != result.top_value]
    return max(others, key=result.distribution.__getitem__)


def _push_bars(pushes: FloatArray) -> list[str | Text]:
    """Full for the strongest; what speaks against is drawn lighter, so that it shows uncoloured."""
    sizes = np.abs(pushes)
    largest = max(sizes[np.isfinite(sizes)], default=0.0) or 1.0
    bars: list[str | Text] = []
    for value in pushes.tolist():
        share = 1.0 if math.isinf(value) else 0.0 if math.isnan(value) else abs(value) / largest
        block, style = ("█", "green") if value > 0 else ("░", "red")
        bars.append(Text(block * round(PUSH_WIDTH * share), style))
    return bars


def _says(result: QueryResult, potential: FloatArray) -> str:
    best = int(potential.argmax())
    return f"{result.values[best]} {100 * potential[best]:.0f} %"


def _left_out(result: QueryResult) -> str:
    """Empty where nothing was, or the lines above say it."""
    left_out = result.left_out
    if left_out is None or not left_out.count or result.source == "none":
        return ""
    return f"left out: {left_out.reasons(result.options)}{_remedy(result, left_out)}"


def _remedy(result: QueryResult, left_out: LeftOut) -> str:
    """The options with which what was left out would count; only time lets the others count."""
    waiting = left_out.below_credibility + left_out.beyond_top_k
    needed = len(result.evidence_chain) + waiting
    options = ["--min-credibility 0"] if left_out.below_credibility else []
    if needed > result.options.top_k:
        options.append(f"--top-k {needed}")
    them = "it" if waiting == 1 else "them"
    return f" ({' '.join(options)} counts {them})" if waiting else ""


def _fact(fact: FactUsed) -> str:
    if fact.role == "hard":
        return f"{fact.value}, certain, {_since(fact)}"
    return f"{fact.value}, believed with {percent(fact.strength)}, {_since(fact)}"


def _since(fact: FactUsed) -> str:
    return f"of {when(from_micros(fact.timestamp))}"


def _closing(result: QueryResult) -> list[tuple[str, str]]:
    pairs = _doubt(result)
    conflict = result.conflict
    if conflict is not None and len(result.evidence_chain) > 1:
        pairs.append(("conflict", f"{_worded(conflict, CONFLICTS)} ({conflict:.2f} of 1)"))
    pairs += [("note", note) for note in result.notes if note not in _said_above(result)]
    pairs.append(("record", result.audit_ptr or AUDITS[result.audit]))
    stages = [f"{name} {result.stages[name]:.1f}" for name in STAGES if name in result.stages]
    pairs.append(("time", f"{result.execution_time_ms:.1f} ms: {' · '.join(stages)}"))
    return pairs


def _said_above(result: QueryResult) -> tuple[str, ...]:
    """Notes that the lines above the bars, or below the items, tell more fully."""
    left_out = result.left_out
    return (NOTHING, none_counts(left_out, result.options)) if left_out else ()


def _doubt(result: QueryResult) -> list[tuple[str, str]]:
    """The entropy in words and numbers; where draws were asked for, theirs too, by its causes."""
    most = math.log(len(result.values)) or 1.0
    nats = abs(float(entropy(np.array(result.probabilities))))  # never -0.00
    words = f"{_worded(nats / most, DOUBTS)}: entropy {nats:.2f} of {most:.2f} nats"
    parts = result.uncertainty
    if parts is None:
        return [("doubt", words)]
    total = parts["aleatoric"] + parts["epistemic"]
    # A single draw says less than the mean that answers: the two differ by nature.
    causes = (
        f"over {result.options.uncertainty_samples} draws, with each item's latent drawn once "
        f"instead of read as above, the answer would spread to {total:.2f} nats: "
        f"{parts['aleatoric']:.2f} as the items are ambiguous (aleatoric), "
        f"{parts['epistemic']:.2f} as their reading is unsure (epistemic)"
    )
    return [("doubt", f"in the answer itself {words}"), ("if drawn", causes)]


def _worded(share: float, scale: tuple[tuple[float, str], ...]) -> str:
    return next(words for limit, words in scale if share < limit)
