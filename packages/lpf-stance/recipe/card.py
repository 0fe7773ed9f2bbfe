"""The model card: its tables are filled from the run's log and from ``scores.json``.

A table stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``; everything else in the
card is written by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from recipe.mixture import PASS

PACKAGE = Path(__file__).parents[1]
MODEL = PACKAGE / "src" / "lpf_stance" / "model"
CARD_FILE, SCORES_FILE = "card.md", "scores.json"
BASE = "gte-small.safetensors"
NOT_YET = "Not computed for these weights yet: `python -m recipe.scores` fills this in."
METHODS = {
    "stance": "stance reader",
    "words": "words, logistic regression",
    "cosine": "cosine of sentence embeddings",
}
# What each data set is, and its licence.
SOURCES = {
    "mnli_dev": ("MultiNLI, development set", "OANC and others"),
    "snli_train_subset": ("SNLI, part of the training set", "CC BY-SA 4.0"),
    "snli_devtest": ("SNLI, development and test set", "CC BY-SA 4.0"),
    "fever_train_sample": ("FEVER, part of the training set", "CC BY-SA 3.0"),
    "creak_expl": ("CREAK, claims with explanations", "MIT"),
    "cad_snli": ("Counterfactually augmented SNLI", "Apache-2.0"),
    "conflictqa_strategyqa_llm": ("ConflictQA, evidence written by an LLM", "Apache-2.0"),
    "exfever_test_sr": ("EX-FEVER", "MIT"),
    "feverous_s_dev": ("FEVEROUS, sentences", "CC BY-SA 3.0"),
    "fm2_devtest": ("FoolMeTwice", "Apache-2.0"),
    "negation_nli": ("Negation NLI", "MIT"),
    "factcheckgpt_stance": ("Factcheck-GPT", "Apache-2.0"),
    "ibm_arg30k_stance": ("IBM Arg-30k (opinions)", "CC BY-SA 3.0"),
    "perspectrum": ("Perspectrum (opinions)", "CC BY-SA"),
    "check_covid_traindev": ("Check-COVID", "MIT"),
    "arc_stance": ("ARC stance (opinions)", "Apache-2.0"),
    "argkp2021": ("ArgKP-2021 (opinions)", "CDLA-Sharing"),
    "explagraphs": ("ExplaGraphs (opinions)", "MIT"),
    "breaking_nli": ("Breaking NLI", "CC BY-SA 4.0"),
}


def fill_card(path: Path, sections: Mapping[str, str]) -> None:
    """Replace the sections of the card; ValueError if it lacks one."""
    text = path.read_text(encoding="utf-8")
    for name, content in sections.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        pattern = re.compile(rf"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{path} has no section between {begin} and {end}.")
        replacement = f"{begin}\n{content}\n{end}"
        text = pattern.sub(lambda _, new=replacement: new, text, count=1)
    path.write_text(text, encoding="utf-8")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table: the first column to the left, the others to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def data_section() -> str:
    rows = [(SOURCES[name][0], SOURCES[name][1], f"{count:,}") for name, count in PASS.items()]
    return table(("data set", "licence", "pairs in a pass"), rows)


def training_section(logs: Sequence[Path]) -> str:
    """The commands of the runs that led to the weights, each begun from the one before, with their
    pairs and hours. Settings that changed while a run was continued are named."""
    commands: list[str] = []
    notes: list[str] = []
    total, hours = 0, 0.0
    for number, log in enumerate(logs, start=1):
        entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        starts = [entry for entry in entries if "settings" in entry]
        settings = starts[-1]["settings"]
        base = BASE if number == 1 else f"run-{number - 1}/weights.safetensors"
        commands.append(
            f"python -m recipe --base {base} --tokenizer tokenizer.json --data pairs \\\n"
            f"  --out run-{number} --pairs {settings['pairs']} --rate {settings['rate']:g} "
            f"--seed {settings['seed']}"
        )
        notes += [_changed(number, *two) for two in pairwise(starts)]
        total += max(entry.get("pairs", 0) for entry in entries)
        hours += _hours(entries)
    runs = f"{len(logs)} runs, each from the weights of the one before" if logs[1:] else "one run"
    summary = f"{total:,} pairs and {hours:.1f} hours on one core, in {runs}."
    return "\n".join(["```", *commands, "```", "", " ".join([summary, *filter(None, notes)])])


def _changed(number: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    old, new = before["settings"], after["settings"]
    changes = [
        f"{name} {old[name]} became {new[name]}"
        for name in new
        if name != "base" and new[name] != old[name]
    ]
    if not changes:
        return ""
    return f"Run {number} was continued after {after['start']:,} pairs: {', '.join(changes)}."


def _hours(entries: Sequence[Mapping[str, Any]]) -> float:
    """Time between the first and the last entry, without the gaps before a run was continued."""
    seconds, last = 0, None
    for entry in entries:
        if last is not None and "settings" not in entry:
            seconds += entry["time"] - last
        last = entry["time"]
    return seconds / 3600


def storage_section(size: int, digest: str, scores: Mapping[str, Any]) -> str:
    lines = [f"`model.safetensors`: {size / 1e6:.1f} MB, sha-256 `{digest}`."]
    found = scores.get("storage")
    if found:
        for key, name in (("float32", "read in float32"), ("int8", 'read with `precision="int8"`')):
            one = found[key]
            lines.append(
                f"Against the float32 weights of the run, on {found['pairs']} pairs, {name}: a "
                f"probability changes by {one['mean_change']:.4f} on average and by at most "
                f"{one['largest_change']:.3f}; accuracy {_change(one['accuracy_change'], 4)}, NLL "
                f"{_change(one['nll_change'], 4)}."
            )
    return "\n\n".join(lines)


def score_sections(scores: Mapping[str, Any]) -> dict[str, str]:
    makers = {"left-out": _left_out, "contrast": _contrast, "speed": _speed}
    return {
        name: make(scores[name]) if name in scores else NOT_YET for name, make in makers.items()
    }


def _left_out(found: Mapping[str, Any]) -> str:
    columns = [(method, score) for method in METHODS for score in ("accuracy", "nll")]
    head = ["data set", "pairs", "labels"]
    head += [f"{METHODS[m]}, {'NLL' if s == 'nll' else s}" for m, s in columns]
    rows = [
        [name, f"{one['pairs']:,}", str(one["labels"])]
        + [_show(one[method][score]) for method, score in columns]
        for name, one in found.items()
    ]
    worse = {
        score: [name for name, one in found.items() if _baseline_wins(one, score)]
        for score in ("accuracy", "nll")
    }
    return (
        f"{table(head, rows)}\n\nA baseline is more accurate on {_listed(worse['accuracy'])}, and "
        f"has the lower NLL on {_listed(worse['nll'])}."
    )


def _baseline_wins(one: Mapping[str, Any], score: str) -> bool:
    sign = -1 if score == "nll" else 1
    own = sign * one["stance"][score]
    return any(sign * one[method][score] > own for method in METHODS if method != "stance")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def _contrast(scores: Mapping[str, Any]) -> str:
    found, recall = scores["categories"], scores["recall"]
    columns = [(method, part) for method in METHODS for part in ("lines", "pairs")]
    head = ["category", *(f"{METHODS[method]}, {part}" for method, part in columns)]
    rows = [
        [name.replace("_", " "), *(f"{100 * one[method][part]:.0f} %" for method, part in columns)]
        for name, one in found.items()
    ]
    worse = [
        name.replace("_", " ")
        for name, one in found.items()
        if any(one[method]["lines"] >= one["stance"]["lines"] for method in ("words", "cosine"))
    ]
    shares = [f"{100 * share:.0f} % of those labelled {label}" for label, share in recall.items()]
    return (
        f"{table(head, rows)}\n\nA baseline gets at least as many lines right in {_listed(worse)}. "
        f"The stance reader gets right {shares[0]}, {shares[1]} and {shares[2]}."
    )


def _speed(found: Mapping[str, Any]) -> str:
    rows = [
        ("pairs per second, float32", f"{found['pairs_per_second']['float32']:.0f}"),
        ("pairs per second, int8", f"{found['pairs_per_second']['int8']:.0f}"),
        ("pairs per second, sentence encoder", f"{found['pairs_per_second']['minilm']:.0f}"),
        ("import to first pair, float32", f"{found['cold_start_seconds']['stance']:.2f} s"),
        (
            "import to first text, sentence encoder",
            f"{found['cold_start_seconds']['minilm']:.2f} s",
        ),
        ("exported model, float32", f"{found['megabytes']['float32']:.0f} MB"),
        ("exported model, int8", f"{found['megabytes']['int8']:.0f} MB"),
    ]
    return table(("what", "value"), rows)


def _show(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1) if value < 1 else f"{value:.3f}"


def _change(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}"


def read_scores(path: Path, digest: str) -> dict[str, Any]:
    """The scores in a file if they are of the weights with this sha-256; otherwise none."""
    if not path.exists():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found if found.get("weights_sha256") == digest else {}
