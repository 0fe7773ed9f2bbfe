"""Compare the default reader with sentence-transformers: throughput and cold start. Compare the
stance reader with the default one.

All use the same texts and number of threads; the first two use the same weights.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import Row, paired_ratio
from lpf.reading import MiniLMReader, ReadRequest, StanceReader, export_minilm
from lpf.reading.export import installed_weights
from lpf.reading.graph import Precision
from lpf.reading.stance import stance_probabilities

THREADS = 2
TEXT_COUNT = 160
THROUGHPUT_GOAL = 1.4
COLD_START_GOAL = 8.0
MEMORY_GOAL = 100  # MB
WORDS = (
    "the of and in a was by to on for with from after although company supplier audit report "
    "quarterly evidence compliance inspection confirmed delay violation documented site regional "
    "manager responsible unexpectedly emission figures revenue claims denied witness statement "
    "published according study patients trial increased reduced significantly unverified rumour "
    "officials later corrected record 2019 forty-two percent infrastructure reclassification"
)
OUR_START = "from lpf.reading import MiniLMReader\nMiniLMReader().read('One sentence.')"
THEIR_START = (
    "from sentence_transformers import SentenceTransformer\n"
    "SentenceTransformer({path!r}, device='cpu').encode('One sentence.')"
)


def make_texts(
    count: int = TEXT_COUNT, seed: int = 7, most_words: int = 60, least_words: int = 8
) -> list[str]:
    """Sentences of 8 to 60 words, about the length of evidence."""
    generator, words = random.Random(seed), WORDS.split()
    lengths = (generator.randint(least_words, most_words) for _ in range(count))
    return [" ".join(generator.choices(words, k=k)).capitalize() + "." for k in lengths]


def run() -> list[Row]:
    """All rows of this benchmark; takes about six minutes, three of them for memory."""
    with tempfile.TemporaryDirectory() as cache:
        # Cold starts first: once loaded, torch takes memory and threads of this process.
        return [
            _cold_start(cache),
            *_throughput(cache),
            *_stance_rows(cache),
            *_stance_memory(cache),
        ]


def _cold_start(cache: str) -> Row:
    export_minilm(cache)
    environment = {**os.environ, "LPF_CACHE_DIR": cache, "HF_HUB_OFFLINE": "1"}

    def start(code: str) -> Callable[[], object]:
        command = [sys.executable, "-W", "ignore", "-c", code]
        return lambda: subprocess.run(command, env=environment, check=True, capture_output=True)

    theirs = start(THEIR_START.format(path=str(installed_weights())))
    paired = paired_ratio(start(OUR_START), theirs, repeats=5)
    return Row(
        "reader, import to first sentence",
        paired.candidate_seconds,
        "s",
        f"sentence-transformers {paired.reference_seconds:.2f} s",
        paired.ratio,
        f">= {COLD_START_GOAL}x",
        paired.ratio >= COLD_START_GOAL,
    )


def _throughput(cache: str) -> list[Row]:
    texts, theirs = make_texts(), _sentence_transformer()
    exact = MiniLMReader(cache_dir=cache, threads=THREADS)
    small = MiniLMReader(cache_dir=cache, threads=THREADS, precision="int8")
    paired = paired_ratio(lambda: exact.read_many(texts), lambda: theirs.encode(texts), repeats=9)
    row = Row(
        "reader, float32",
        len(texts) / paired.candidate_seconds,
        "sentences/s",
        f"sentence-transformers {len(texts) / paired.reference_seconds:.0f}/s",
        paired.ratio,
        f">= {THROUGHPUT_GOAL}x",
        paired.ratio >= THROUGHPUT_GOAL,
    )
    return [row, *_int8_rows(exact, small, texts)]


def _int8_rows(exact: MiniLMReader, small: MiniLMReader, texts: list[str]) -> list[Row]:
    paired = paired_ratio(lambda: small.read_many(texts), lambda: exact.read_many(texts), repeats=7)
    rate, reference = len(texts) / paired.candidate_seconds, len(texts) / paired.reference_seconds
    cosine = float(np.mean((exact.read_many(texts) * small.read_many(texts)).sum(axis=1)))
    against = f"float32 {reference:.0f}/s"
    return [
        Row("reader, int8", rate, "sentences/s", against, paired.ratio, "", None),
        Row("reader, int8 loss", cosine, "mean cosine", "float32", None, "", None),
    ]


def _stance_rows(cache: str) -> list[Row]:
    """Every text is read with a claim; the sentence encoder reads both one by one."""
    texts, claims = make_texts(), make_texts(seed=8, most_words=16)
    pairs = [ReadRequest(text, claim) for text, claim in zip(texts, claims, strict=True)]
    encoder = MiniLMReader(cache_dir=cache, threads=THREADS)
    rows, found = [], {}
    precisions: tuple[Precision, ...] = ("float32", "int8")
    for precision in precisions:
        stance = StanceReader(cache_dir=cache, threads=THREADS, precision=precision)
        paired = paired_ratio(
            lambda reader=stance: reader.read_many(pairs),
            lambda: encoder.read_many([*texts, *claims]),
            repeats=5,
        )
        rate = len(pairs) / paired.candidate_seconds
        against = f"sentence encoder, float32 {len(pairs) / paired.reference_seconds:.0f}/s"
        rows.append(
            Row(f"stance reader, {precision}", rate, "pairs/s", against, paired.ratio, "", None)
        )
        found[precision] = stance_probabilities(stance.read_many(pairs))
    change = float(np.abs(found["float32"] - found["int8"]).mean())
    loss = Row("stance reader, int8 loss", change, "mean change", "float32", None, "", None)
    return [*rows, loss]


# In a new process, because this one has run other benchmarks. Prints the seconds, the memory in MB
# after the first pairs, and the most after that.
_READING_PAIRS = """
import json, resource, sys, time
from pathlib import Path
from benchmarks.reading import THREADS, make_texts
from lpf.reading import ReadRequest, StanceReader

def used():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6

cache, count, first = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
texts = make_texts(count, least_words=190, most_words=230)
claims = make_texts(count, seed=8, most_words=16)
pairs = [ReadRequest(text, claim) for text, claim in zip(texts, claims, strict=True)]
reader = StanceReader(cache_dir=cache, threads=THREADS, precision="int8")
sizes, begin = [], time.perf_counter()
reader.read_many(pairs, progress=lambda done, _: sizes.append((done, used())))
warm = max(size for done, size in sizes if done <= first)
print(json.dumps([time.perf_counter() - begin, warm, max(size for _, size in sizes)]))
"""


def _stance_memory(cache: str, count: int = 10_000, first: int = 1000) -> list[Row]:
    """Pairs of about 256 tokens, most of which are read in two passages."""
    command = [sys.executable, "-c", _READING_PAIRS, cache, str(count), str(first)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, warm, most = json.loads(done.stdout)
    pairs, growth = f"{count:,} pairs of 256 tokens", most - warm
    return [
        Row(
            f"stance reader, int8, memory over {pairs}",
            growth,
            "MB more",
            f"{warm:.0f} MB after the first {first:,}",
            None,
            f"< {MEMORY_GOAL} MB",
            growth < MEMORY_GOAL,
        ),
        Row(f"stance reader, int8, {pairs}", count / seconds, "pairs/s", "", None, "", None),
    ]


def _sentence_transformer() -> Any:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(THREADS)
    return SentenceTransformer(str(installed_weights()), device="cpu")


if __name__ == "__main__":
    for line in run():
        print(line)
