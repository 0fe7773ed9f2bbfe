"""Sentences on evaluated files: where LPF is best, where simpler methods win, what was shared."""

from __future__ import annotations

from collections.abc import Sequence

from lpf.experiments.evaluation.outcome import Evaluation
from lpf.experiments.judging.comparisons import compare
from lpf.experiments.naming import title_of
from lpf.experiments.studies.files.tables import Standing, file_title
from lpf.experiments.workbench.claim_only import CLAIM_ONLY
from lpf.metrics import Difference

SURE = 0.05


def findings(evaluated: Sequence[Evaluation]) -> list[str]:
    if not evaluated:
        return ["No files were given."]
    standings = [Standing.of(one) for one in evaluated]
    sentences = [_overall(standings)]
    sentences += [_file(one) for one in standings]
    sentences += [told for one in evaluated if (told := _claim(one)) is not None]
    return sentences + [told for one in evaluated if (told := _clean(one)) is not None]


def _overall(standings: Sequence[Standing]) -> str:
    better, worse, unclear = (
        [file_title(one.evaluation) for one in standings if _verdict(one) == verdict]
        for verdict in (-1, 1, 0)
    )
    return (
        "Held against the best method without LPF, at 5 % after correction, LPF as training leaves "
        f"it has the lower NLL on {_listed(better, standings)}, the higher on "
        f"{_listed(worse, standings)}, and no clear difference on {_listed(unclear, standings)}."
    )


def _verdict(standing: Standing) -> int:
    """-1 where LPF is better, 1 where the other is, 0 where chance may be all."""
    found = standing.comparison
    if found is None or found.difference is None or found.adjusted is None:
        return 0
    if found.adjusted >= SURE:
        return 0
    return -1 if found.difference.mean < 0 else 1


def _file(standing: Standing) -> str:
    name, found = file_title(standing.evaluation), standing.comparison
    if found is None or found.difference is None or standing.simple is None:
        note = "" if found is None or found.note is None else f" ({found.note})"
        return f"{name}: LPF could not be compared with a method without LPF{note}."
    difference, word = found.difference, "below" if found.difference.mean < 0 else "above"
    best = ""
    if standing.best is not None and standing.best not in (
        standing.evaluation.ours,
        standing.simple,
    ):
        best = f" The lowest of all has {title_of(standing.best)}."
    return (
        f"{name}: LPF is {abs(difference.mean):.4f} {word} {title_of(standing.simple)}, the "
        f"best without LPF, in NLL (95 % interval of the difference {difference.low:z.4f} to "
        f"{difference.high:z.4f}, corrected p {found.adjusted:z.3f}).{best}"
    )


def _claim(evaluation: Evaluation) -> str | None:
    """What of the result the claim gives away by itself."""
    if CLAIM_ONLY not in evaluation.runs or evaluation.ours is None:
        return None
    alone = {CLAIM_ONLY: evaluation.runs[CLAIM_ONLY]}
    runs = evaluation.runs[evaluation.ours]
    found = compare(runs, alone, groups=evaluation.group_of)[0].difference
    if found is None:
        return None
    theirs, ours = (evaluation.summary(name).spreads for name in (CLAIM_ONLY, evaluation.ours))
    return (
        f"{file_title(evaluation)}: the claim alone, without any evidence, has an NLL of "
        f"{theirs['nll'].mean:z.4f} and an accuracy of {theirs['accuracy'].mean:z.4f}, LPF "
        f"{ours['nll'].mean:z.4f} and {ours['accuracy'].mean:z.4f}: {_what_evidence_adds(found)}."
    )


def _what_evidence_adds(found: Difference) -> str:
    if found.low > 0.0:
        return "evidence did harm here"
    if found.high >= 0.0:
        return "that evidence adds anything cannot be told"
    return "the rest is due to evidence, or to a better use of the claim"


def _clean(evaluation: Evaluation) -> str | None:
    """What is left on entities that share nothing with those learned from."""
    if not evaluation.unshared_ids or evaluation.ours is None:
        return None
    clean, whole = evaluation.clean_summary(evaluation.ours), evaluation.summary(evaluation.ours)
    if clean is None or "nll" not in clean.spreads:
        return None
    return (
        f"{file_title(evaluation)}: on the {len(evaluation.unshared_ids):,} entities that share "
        f"nothing with those learned from, LPF has an accuracy of "
        f"{clean.spreads['accuracy'].mean:z.4f} (on all {whole.spreads['accuracy'].mean:z.4f}) and "
        f"an NLL of {clean.spreads['nll'].mean:z.4f} ({whole.spreads['nll'].mean:z.4f})."
    )


def _listed(names: Sequence[str], of: Sequence[object]) -> str:
    which = f" ({', '.join(names)})" if names else ""
    return f"{len(names) or 'none'} of {len(of)} files{which}"
