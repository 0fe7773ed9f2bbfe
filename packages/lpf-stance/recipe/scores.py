"""python -m recipe.scores --data pairs --original run/weights.safetensors

Score the packaged weights through lpf's own reader, beside two simple baselines, and fill in the
card. Every part is written to ``scores.json`` when it is finished; the same command continues.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from lpf.reading import MiniLMReader, ReadRequest, StanceReader
from lpf.reading.export import (
    MODEL_FILE,
    STANCE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    EncoderSource,
    export_encoder,
    export_minilm,
    file_sha256,
)
from lpf.reading.graph import Precision
from lpf.reading.stance import stance_probabilities
from recipe.baselines import CosineBaseline, Probabilities, WordsBaseline
from recipe.card import MODEL, PACKAGE, SCORES_FILE, read_scores
from recipe.mixture import LABELS, PASS, Row, is_development, load
from recipe.package import write_card
from recipe.training import LEFT_OUT

CONTRAST = PACKAGE / "contrast"
PRECISIONS: tuple[Precision, ...] = ("float32", "int8")
SEED = 0
STANCE_START = (
    "from dataclasses import replace\n"
    "from lpf.reading import StanceReader\n"
    "from lpf.reading.export import STANCE\n"
    "source = replace(STANCE, weights_sha256={digest!r})\n"
    "StanceReader(source=source).read('One sentence.', 'One claim.')"
)
MINILM_START = "from lpf.reading import MiniLMReader\nMiniLMReader().read('One sentence.')"


@dataclass(frozen=True)
class Sizes:
    """How many pairs each part uses."""

    judged: int = 1000  # of each data set left out
    development: int = 3000  # for the thresholds of the cosine
    words: int = 20_000  # training pairs of the words baseline
    contrast: int = 1000  # lines of each category
    storage: int = 300
    speed: int = 64
    repeats: int = 5


QUICK = Sizes(20, 60, words=200, contrast=6, storage=10, speed=4, repeats=1)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description="Score the packaged weights; run again to continue."
    )
    parser.add_argument(
        "--package", type=Path, default=MODEL, help="folder of the packaged weights"
    )
    parser.add_argument("--data", required=True, type=Path, help="folder of the pairs")
    parser.add_argument(
        "--original", type=Path, help="float32 weights of the run, to measure what storage costs"
    )
    parser.add_argument("--scores", type=Path, default=PACKAGE / SCORES_FILE)
    parser.add_argument("--quick", action="store_true", help="few pairs, to try the command")
    given = parser.parse_args(arguments)
    needed = [given.package / WEIGHTS_FILE, given.package / TOKENIZER_FILE]
    needed += [given.data / f"{name}.jsonl.gz" for name in (*PASS, *LEFT_OUT)]
    needed += [given.original] if given.original else []
    missing = [str(path) for path in needed if not path.is_file()]
    if missing:
        parser.error(f"there is no file {missing[0]}")
    with tempfile.TemporaryDirectory() as cache:
        scores = Scores(
            given.package,
            given.data,
            Path(cache),
            given.original,
            QUICK if given.quick else Sizes(),
        )
        scores.run(given.scores)
    write_card(given.package, scores.digest, given.scores, [])


@dataclass
class Scores:
    """All parts of the scores of the weights in ``package``."""

    package: Path
    data: Path
    cache: Path
    original: Path | None = None
    sizes: Sizes = field(default_factory=Sizes)

    @cached_property
    def digest(self) -> str:
        return file_sha256(self.package / WEIGHTS_FILE)

    def run(self, path: Path) -> None:
        """Add the parts that ``path`` lacks."""
        found = read_scores(path, self.digest)
        if found.get("sizes") != vars(self.sizes):
            found = {"weights_sha256": self.digest, "sizes": vars(self.sizes)}
        for section, key, part in self._parts():
            own = found if key is None else found.setdefault(section, {})
            name = section if key is None else key
            if name not in own:
                began = time.monotonic()
                own[name] = part()
                path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
                print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)

    def _parts(self) -> Iterator[tuple[str, str | None, Callable[[], object]]]:
        """The section of each part, its key there unless it is the whole section, and the part."""
        yield "contrast", None, self.contrast
        for name in LEFT_OUT:
            yield "left-out", name, partial(self.left_out, name)
        yield "speed", None, self.speed
        if self.original is not None:
            yield "storage", None, self.storage

    # Each method takes rows and returns P(label).

    @cached_property
    def methods(self) -> Mapping[str, Callable[[Sequence[Row]], Probabilities]]:
        return {
            "stance": self._reads(self._reader("float32")),
            "words": WordsBaseline().fit(self._training_pairs(self.sizes.words)).predict,
            "cosine": CosineBaseline(self._minilm).fit(self._development_pairs()).predict,
        }

    @cached_property
    def _source(self) -> EncoderSource:
        return replace(STANCE, weights_sha256=self.digest)

    @cached_property
    def _minilm(self) -> MiniLMReader:
        return MiniLMReader(cache_dir=self.cache)

    def _reader(self, precision: Precision) -> StanceReader:
        return StanceReader(
            precision=precision,
            cache_dir=self.cache,
            weights_dir=self.package,
            source=self._source,
        )

    def _reads(self, reader: StanceReader) -> Callable[[Sequence[Row]], Probabilities]:
        return lambda rows: stance_probabilities(reader.read_many(requests(rows)))

    def _training_pairs(self, count: int) -> list[Row]:
        """From all training sets, in the proportions of the training itself."""
        share = count / sum(PASS.values())
        rows: list[Row] = []
        for name, of_pass in PASS.items():
            own = [row for row in load(self.data, name) if not is_development(row)]
            rows += sample(own, round(share * of_pass))
        return rows

    def _development_pairs(self) -> list[Row]:
        """As many of each label."""
        rows = [row for name in PASS for row in load(self.data, name) if is_development(row)]
        return [
            row
            for label in range(len(LABELS))
            for row in sample(
                [row for row in rows if row.label == label], self.sizes.development // len(LABELS)
            )
        ]

    def left_out(self, name: str) -> dict[str, Any]:
        rows = sample(load(self.data, name), self.sizes.judged)
        found: dict[str, Any] = {"pairs": len(rows), "labels": len({row.label for row in rows})}
        for method, predict in self.methods.items():
            found[method] = score(predict(rows), rows)
        return found

    def contrast(self) -> dict[str, Any]:
        methods = {**self.methods, "stance_int8": self._reads(self._reader("int8"))}
        suites = {
            path.stem: contrast_rows(path)[: self.sizes.contrast]
            for path in sorted(CONTRAST.glob("*.jsonl"))
        }
        suites["all"] = [row for rows in suites.values() for row in rows]
        found: dict[str, Any] = {name: {"lines": len(rows)} for name, rows in suites.items()}
        labels = np.array([row.label for row in suites["all"]])
        recall: dict[str, float] = {}
        for method, predict in methods.items():
            predicted = predict(suites["all"]).argmax(axis=1)
            if method == "stance":
                kept = {
                    name: predicted[labels == place] == place for place, name in enumerate(LABELS)
                }
                recall = {name: float(one.mean()) for name, one in kept.items()}
            start = 0
            for name, rows in suites.items():
                own = predicted if name == "all" else predicted[start : start + len(rows)]
                start += len(rows)
                right = own == [row.label for row in rows]
                found[name][method] = {
                    "lines": float(right.mean()),
                    "pairs": float(right.reshape(-1, 2).all(axis=1).mean()),
                }
        return {"categories": found, "recall": recall}

    def storage(self) -> dict[str, Any]:
        """What it costs to store matrices in int8: against the float32 weights of the run."""
        assert self.original is not None
        rows = sample(self._training_pairs(10 * self.sizes.storage), self.sizes.storage)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / WEIGHTS_FILE).symlink_to(self.original.resolve())
            (folder / TOKENIZER_FILE).symlink_to((self.package / TOKENIZER_FILE).resolve())
            source = replace(STANCE, weights_sha256=file_sha256(self.original))
            exact = StanceReader(source=source, weights_dir=folder, cache_dir=folder)
            expected = self._reads(exact)(rows)
        before = score(expected, rows)
        found: dict[str, Any] = {"pairs": len(rows)}
        for precision in PRECISIONS:
            predicted = self._reads(self._reader(precision))(rows)
            after, change = score(predicted, rows), np.abs(predicted - expected)
            found[precision] = {
                "largest_change": float(change.max()),
                "mean_change": float(change.mean()),
                "accuracy_change": after["accuracy"] - before["accuracy"],
                "nll_change": after["nll"] - before["nll"],
            }
        return found

    def speed(self) -> dict[str, Any]:
        """Rates, in turns with the sentence encoder, which reads claim and evidence one by one."""
        rows = sample(load(self.data, "fever_train_sample"), self.sizes.speed)
        texts = [text for row in rows for text in (row.claim, row.evidence)]
        readers = {precision: self._reader(precision) for precision in PRECISIONS}
        calls: dict[str, Callable[[], object]] = {
            "float32": lambda: readers["float32"].read_many(requests(rows)),
            "int8": lambda: readers["int8"].read_many(requests(rows)),
            "minilm": lambda: self._minilm.read_many(texts),
        }
        seconds = in_turns(calls, self.sizes.repeats)
        folders = {
            precision: export_encoder(
                self._source, self.cache, precision=precision, weights_dir=self.package
            )
            for precision in PRECISIONS
        }
        return {
            "pairs_per_second": {name: len(rows) / one for name, one in seconds.items()},
            "cold_start_seconds": self._cold_start(),
            "megabytes": {
                "package": (self.package / WEIGHTS_FILE).stat().st_size / 1e6,
                **{one: (path / MODEL_FILE).stat().st_size / 1e6 for one, path in folders.items()},
            },
        }

    def _cold_start(self) -> dict[str, float]:
        """Seconds from the start of Python to the first item, with an export that is there."""
        export_minilm(self.cache)
        environment = {**os.environ, "LPF_CACHE_DIR": str(self.cache)}

        def start(code: str) -> Callable[[], object]:
            command = [sys.executable, "-W", "ignore", "-c", code]
            return lambda: subprocess.run(command, env=environment, check=True)

        calls = {
            "stance": start(STANCE_START.format(digest=self.digest)),
            "minilm": start(MINILM_START),
        }
        return in_turns(calls, self.sizes.repeats)


def requests(rows: Sequence[Row]) -> list[ReadRequest]:
    return [ReadRequest(row.evidence, row.claim) for row in rows]


def sample(rows: Sequence[Row], most: int) -> list[Row]:
    """At most ``most`` rows that can be read, always the same ones, in their order."""
    readable = [row for row in rows if row.claim.strip() and row.evidence.strip()]
    if len(readable) <= most:
        return readable
    return [
        readable[place] for place in sorted(random.Random(SEED).sample(range(len(readable)), most))
    ]


def score(predicted: Probabilities, rows: Sequence[Row]) -> dict[str, float]:
    """Accuracy and NLL over the labels that occur among the rows; others are left out."""
    labels = np.array([row.label for row in rows])
    present = np.unique(labels)
    shares = predicted[:, present] / predicted[:, present].sum(axis=1, keepdims=True)
    places = np.searchsorted(present, labels)
    return {
        "accuracy": float((shares.argmax(axis=1) == places).mean()),
        "nll": float(-np.log(shares[np.arange(len(rows)), places]).mean()),
    }


def contrast_rows(path: Path) -> list[Row]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Row(one["claim"], one["evidence"], LABELS.index(one["label"]), one["pair"]) for one in lines
    ]


def in_turns(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each call, after one to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(repeats + 1):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            if turn:
                seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(found) for name, found in seconds.items()}


if __name__ == "__main__":
    main()
