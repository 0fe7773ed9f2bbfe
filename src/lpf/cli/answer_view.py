"""Show an answer on the terminal: verdict, basis, contribution of each item, and record.

Contributions and entropies are shown in bits; ``QueryResult`` and its JSON have natural logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.text import Text

from lpf.cli.safe_output import one_line, visible
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
from lpf.explain.how_sure import how_sure
from lpf.explain.sentences import METHODS_IN_WORDS, conflict_in_words
from lpf.explain.weight_reasons import joined
from lpf.items import Items, LeftOut
from lpf.orchestrator.inference import NOTHING, RELATED_ONLY
from lpf.results import (
    NO_ANSWER,
    NO_WORDS,
    STAGES,
    UNLIKE,
    FactUsed,
    QueryResult,
    all_left_out_note,
    beyond_top_k_notes,
    unfamiliar_notes,
    unfamiliar_places,
)
from lpf.storage.values import from_micros
from lpf.types import FloatArray

NAT = 1.0 / math.log(2.0)  # in bits
BARS_FROM = 100  # columns: a terminal this wide has room for bars next to the numbers
BAR_WIDTH = 8
ERASED = "(erased)"

UNCERTAINTIES = ((0.1, "very low"), (0.4, "low"), (0.8, "high"), (1.1, "close to the maximum"))
AUDITS = {"pending": "pending: being written in the background", "off": "not recorded"}


def show_answer(
    output: Console,
    result: QueryResult,
    texts: Mapping[str, str],
    origins: Mapping[str, str] | None = None,
    *,
    verbose: bool = False,
) -> None:
    """``texts`` are the items' texts by id; an erased one is missing. With ``origins`` (source and
    date by id) texts are shown in full."""
    output.print(
        Text.assemble(
            one_line(f"{result.entity_id} · {result.predicate}: "),
            (one_line(_verdict(result)), "bold"),
        )
    )
    claims = result.claims
    if claims:
        several = f"{len(claims)} different ones; --full shows them"
        claim = one_line(several if len(claims) > 1 else claims[0])
        output.print(indented(Text(f"claim: {claim}")))
    for line in _basis(result):
        output.print(indented(Text(one_line(line), style="dim")))
    for line in how_sure(result):
        output.print(indented(Text(one_line(line))))
    output.print()
    output.print(indented(distribution(result.distribution, output.width)))
    output.print()
    used, left_out = result.evidence, _left_out(result)
    if used:
        _show_evidence(output, result, used, texts, origins)
        _show_claim_alone(output, result)
    if left_out:
        output.print(indented(Text(one_line(left_out), style="dim")))
    if used or left_out:
        output.print()
    if result.related:
        _show_related(output, result, texts, origins, verbose)
    if result.facts and result.source != "canonical":
        output.print(Text("Known facts", style="bold"))
        print_pairs(output, [(fact.predicate, _fact(fact)) for fact in result.facts])
        output.print()
    print_pairs(output, _closing(result, verbose))


def _verdict(result: QueryResult) -> str:
    """The top value and its probability; the prior alone is not an answer."""
    if result.top_value is None or result.confidence is None:
        return NO_ANSWER
    answer = f"{result.top_value}, {percent(result.confidence)}"
    return f"deferred (would be {answer})" if result.is_deferred else answer


def _basis(result: QueryResult) -> list[str]:
    """What the answer is based on."""
    if result.source == "canonical":
        fact = result.facts[0]
        return [f"a known fact answers: confidence {fact.confidence:g}, {_dated(fact)}"]
    if not result.has_answer:
        return _why_nothing(result)
    if result.source == "facts":
        return [f"based on {count(len(result.facts), 'known fact')} alone"]
    used = result.evidence
    parts = [] if used is None else [f"{len(used)} of {count(used.considered, 'item')}"]
    parts += [f"{count(len(one.items), 'item')} about {one.predicate}" for one in result.related]
    if result.facts:
        parts.append(count(len(result.facts), "known fact"))
    mode = ", paper mode" if result.options.mode == "paper" else ""
    lines = [f"based on {joined(parts)}, {METHODS_IN_WORDS[result.method]}{mode}"]
    if used is None and not (result.left_out and result.left_out.count):
        lines.append(f"there is no item about {result.predicate} itself")
    return [*_all_unfamiliar(result), *lines]


def _all_unfamiliar(result: QueryResult) -> list[str]:
    """The notes about items unlike the training texts, at the top if all items are."""
    used = result.evidence
    if used is None or not len(used) or len(unfamiliar_places(used)) < len(used):
        return []
    return unfamiliar_notes(used, weighted=_counts_less(result))


def _counts_less(result: QueryResult) -> bool:
    """True if items unlike the training texts have less weight in this answer."""
    return result.method == "spn" and result.options.mode == "robust"


def _why_nothing(result: QueryResult) -> list[str]:
    left_out = result.left_out
    if left_out is not None and left_out.count:
        return [
            all_left_out_note(left_out, result.options, result.threshold)
            + _remedy(result, left_out),
            "no fact counts either: these are the prior probabilities",
        ]
    if result.similar is None:
        about = result.predicate
        return [f"no item about {about} and no fact counts: these are the prior probabilities"]
    lines = [
        f"no item and no fact is about {result.entity_id!r}: these are the prior probabilities"
    ]
    return [*lines, did_you_mean(result.similar)] if result.similar else lines


def did_you_mean(similar: Sequence[str]) -> str:
    return f"did you mean {' or '.join(similar)}?"


def _show_evidence(
    output: Console,
    result: QueryResult,
    used: Items,
    texts: Mapping[str, str],
    origins: Mapping[str, str] | None,
) -> None:
    bits = bits_added(result, used)
    title = "Evidence" if bits is None else f"Evidence: {_one_bit(result)}"
    columns = _evidence_columns(result, used, bits, output.width >= BARS_FROM)
    below: list[RenderableType] = []
    if origins is None:
        columns["text"] = [start_of(texts.get(name, ERASED)) for name in used.ids]
    else:
        below = [_full_text(texts.get(name, ERASED), origins.get(name)) for name in used.ids]
    rows = list(zip(*columns.values(), strict=True))
    right = ("bits", "weight", "credibility", "relevance")
    optional = () if bits is None else ("relevance", "weight")  # the bits include them
    body = table(list(columns), rows, right=right, flexible="text", optional=optional, below=below)
    print_table(output, title, body)
    for line in _unfamiliar_lines(result, used):
        output.print(indented(Text(line, style="dim")))


def _show_claim_alone(output: Console, result: QueryResult) -> None:
    """What was taken out because the claim alone gives it away, in the bits of the items."""
    if result.claim_alone is None:
        return
    bits = _in_bits(result, result.claim_alone[None])
    if bits is not None:
        output.print(indented(Text(f"claim alone, taken out: {number(bits[0], '+.2f')} bits")))


def _unfamiliar_lines(result: QueryResult, used: Items) -> Iterator[str]:
    """One line per item that is unlike the training texts; robust mode gives it less weight."""
    weighted = _counts_less(result)
    for place in unfamiliar_places(used):
        assert used.familiarity is not None  # else no item would be named
        counts = f": counts {used.familiarity[place]:.2f}" if weighted else ""
        blank = used.wordless is not None and used.wordless[place]
        yield f"{used.ids[place]}: {NO_WORDS if blank else UNLIKE}{counts}"


def _one_bit(result: QueryResult) -> str:
    return f"+1 bit doubles the odds of {result.top_value} against {runner_up(result)}"


def _show_related(
    output: Console,
    result: QueryResult,
    texts: Mapping[str, str],
    origins: Mapping[str, str] | None,
    verbose: bool,
) -> None:
    """One row per related predicate: what its items say together, and what that adds."""
    rows = np.array([one.contribution for one in result.related])
    bits = _in_bits(result, rows)
    columns: dict[str, list[str | Text]] = {
        "predicate": [one.predicate for one in result.related],
        "says": [_says(one.values, np.array(one.distribution)) for one in result.related],
    }
    if bits is not None:
        columns["bits"] = [number(value, "+.2f") for value in bits.tolist()]
    columns["items"] = [f"{len(one.items)} of {one.items.considered}" for one in result.related]
    below: list[RenderableType] = []
    if origins is not None:
        below = [
            Group(*[_full_text(f"{name}: {texts.get(name, ERASED)}", origins.get(name))
                    for name in one.evidence_chain])
            for one in result.related
        ]  # fmt: skip
    elif verbose:
        below = [
            indented(Text(one_line(", ".join(one.evidence_chain)), style="dim", overflow="fold"))
            for one in result.related
        ]
    body = table(list(columns), zip(*columns.values(), strict=True), right=("bits",), below=below)
    title = "Related evidence" if bits is None else f"Related evidence: {_one_bit(result)}"
    print_table(output, title, body)
    output.print()


def _evidence_columns(
    result: QueryResult, used: Items, bits: FloatArray | None, wide: bool
) -> dict[str, list[str | Text]]:
    has_copies = bool((used.groups >= 0).any())
    columns: dict[str, list[str | Text]] = {"item": list(used.ids)}
    if used.potential is not None:
        columns["says"] = [_says(result.values, row) for row in used.potential]
    if bits is not None:
        columns["bits"] = [number(value, "+.2f") for value in bits.tolist()]
        if wide:
            columns["      "] = _bars(bits)
    columns["weight"] = [number(value) for value in used.weight.tolist()]
    columns["credibility"] = [number(value) for value in used.credibility.tolist()]
    if used.relevance is not None:
        columns["relevance"] = [number(value) for value in used.relevance.tolist()]
    if has_copies:
        columns["copies"] = [f"#{group + 1}" if group >= 0 else "" for group in used.groups]
    return columns


def _full_text(text: str, origin: str | None) -> RenderableType:
    lines = Text(visible(text.strip()), overflow="fold")
    if origin is not None:
        lines.append(f"\n{one_line(origin)}", style="dim")
    return indented(lines)


def bits_added(result: QueryResult, used: Items) -> FloatArray | None:
    """What each item adds to the log odds of the top value against the runner-up, in bits, [K];
    None if there are no contributions, or only one value."""
    return None if used.contributions is None else _in_bits(result, used.contributions)


def _in_bits(result: QueryResult, contributions: FloatArray) -> FloatArray | None:
    """``contributions`` [K, V] to the log odds of the top value against the runner-up, in bits."""
    best = result.top_value
    if len(result.values) < 2 or best is None:
        return None
    top, second = (result.values.index(name) for name in (best, runner_up(result)))
    with np.errstate(invalid="ignore"):  # an item may rule out both: -inf - -inf
        return np.asarray(NAT * (contributions[:, top] - contributions[:, second]))


def runner_up(result: QueryResult) -> str:
    others = [value for value in result.values if value != result.top_value]
    return max(others, key=result.distribution.__getitem__)


def _bars(bits: FloatArray) -> list[str | Text]:
    """One bar per item, longest for the strongest; items against have lighter blocks, so that
    colour is not needed."""
    sizes = np.abs(bits)
    largest = max(sizes[np.isfinite(sizes)], default=0.0) or 1.0
    bars: list[str | Text] = []
    for value in bits.tolist():
        share = 1.0 if math.isinf(value) else 0.0 if math.isnan(value) else abs(value) / largest
        block, style = ("█", "green") if value > 0 else ("░", "red")
        bars.append(Text(block * round(BAR_WIDTH * share), style))
    return bars


def _says(values: Sequence[str], potential: FloatArray) -> str:
    best = int(potential.argmax())
    return f"{values[best]} {100 * potential[best]:.0f} %"


def _left_out(result: QueryResult) -> str:
    """Empty if nothing was left out, or if the lines at the top say so already."""
    left_out = result.left_out
    if left_out is None or not left_out.count or not result.has_answer:
        return ""
    reasons = left_out.reasons(result.options, result.threshold)
    return f"left out: {reasons}{_remedy(result, left_out)}"


def _remedy(result: QueryResult, left_out: LeftOut) -> str:
    """The options that would include the items left out; no option includes items dated later."""
    waiting = left_out.below_credibility + left_out.beyond_top_k
    needed = len(result.evidence_chain) + waiting
    options = ["--min-credibility 0"] if left_out.below_credibility else []
    if needed > result.options.most_items:
        options.append(f"--top-k {needed}")
    them = "it" if waiting == 1 else "them"
    return f" ({' '.join(options)} includes {them})" if waiting else ""


def _fact(fact: FactUsed) -> str:
    belief = "certain" if fact.role == "hard" else f"{percent(fact.strength)} sure"
    return f"{fact.value}, {belief}, {_dated(fact)}"


def _dated(fact: FactUsed) -> str:
    return f"dated {when(from_micros(fact.timestamp))}"


def _closing(result: QueryResult, verbose: bool) -> list[tuple[str, str]]:
    pairs = _uncertainty(result)
    conflict = result.conflict
    if conflict is not None and len(result.evidence_chain) > 1:
        pairs.append(("conflict", conflict_in_words(conflict)))
    pairs += [("note", note) for note in result.notes if note not in _said_above(result)]
    pairs.append(("record", result.audit_ptr or AUDITS[result.audit]))
    if verbose:
        stages = [f"{name} {result.stages[name]:.1f}" for name in STAGES if name in result.stages]
        pairs.append(("time", f"{result.execution_time_ms:.1f} ms: {' · '.join(stages)}"))
        options = vars(result.options).items()
        given = ", ".join(f"{name} {value}" for name, value in options if value is not None)
        pairs.append(("options", given))
    return pairs


def _said_above(result: QueryResult) -> tuple[str, ...]:
    """Notes that other lines repeat in more detail."""
    left_out = result.left_out
    said = _all_unfamiliar(result)
    if result.trust is not None and result.trust.warning is not None:
        said.append(result.trust.warning)
    if result.evidence is not None:
        said += beyond_top_k_notes(result.evidence, result.options)
    if left_out is None:
        return tuple(said)
    note = all_left_out_note(left_out, result.options, result.threshold)
    return (NOTHING, RELATED_ONLY, note, *said)


def _uncertainty(result: QueryResult) -> list[tuple[str, str]]:
    """The entropy; with ``uncertainty_samples``, also how far the answer varies over the draws."""
    most = math.log2(len(result.values)) or 1.0
    bits = abs(NAT * float(entropy(np.array(result.probabilities))))  # never -0.00
    words = _in_words(bits / most, UNCERTAINTIES)
    pairs = [("uncertainty", f"{words}: entropy {bits:.2f} of at most {most:.2f} bits")]
    parts = result.uncertainty
    if parts is not None:
        aleatoric, epistemic = NAT * parts["aleatoric"], NAT * parts["epistemic"]
        # The answer uses the mean code, not these draws, so its entropy differs from theirs.
        draws = (
            f"{result.options.uncertainty_samples} draws of the items' latent codes: entropy "
            f"{aleatoric + epistemic:.2f} bits, of which {aleatoric:.2f} because the items are "
            f"ambiguous (aleatoric) and {epistemic:.2f} because the model is not sure what they "
            "say (epistemic)"
        )
        pairs.append(("draws", draws))
    return pairs


def _in_words(share: float, scale: tuple[tuple[float, str], ...]) -> str:
    return next(words for limit, words in scale if share < limit)
