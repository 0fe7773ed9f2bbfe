"""python -m recipe.package --weights run/weights.safetensors --run run

Store the weights of a run, or the mean of several, in the package, fill in the card, and pin their
hash in lpf.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from lpf.reading.export import STANCE, TOKENIZER_FILE, WEIGHTS_FILE, file_sha256, installed_weights
from lpf.reading.graph import Array, build_pair_model
from lpf.reading.stance import HIDDEN_WIDTH, STANCES
from lpf.reading.stored_weights import pack_weights, unpack_weights
from recipe.card import (
    CARD_FILE,
    MODEL,
    PACKAGE,
    SCORES_FILE,
    data_section,
    fill_card,
    read_scores,
    score_sections,
    storage_section,
    training_section,
)

LARGEST = 50_000_000  # bytes
PINNED_IN = PACKAGE.parents[1] / "src" / "lpf" / "reading" / "export.py"
_PIN = re.compile(r'("lpf-stance==[\d.]+",\n\s*)"[^"]*"')


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Store the weights of a run in the package.")
    parser.add_argument(
        "--weights",
        required=True,
        type=Path,
        action="append",
        help="float32 weights of a run; given several times, their mean is stored",
    )
    parser.add_argument("--out", type=Path, default=MODEL, help="folder (default: the package's)")
    parser.add_argument("--tokenizer", type=Path, help="default: that of the sentence encoder")
    parser.add_argument(
        "--run",
        type=Path,
        action="append",
        default=[],
        help="folder of a run or its log.jsonl, for the card; once per run, in their order",
    )
    parser.add_argument("--scores", type=Path, default=PACKAGE / SCORES_FILE)
    parser.add_argument("--float16", metavar="REGEX", help="matrices to store in float16, not int8")
    given = parser.parse_args(arguments)
    try:
        digest = store(given.weights, given.out, given.tokenizer, given.float16)
        write_card(given.out, digest, given.scores, [_log(run) for run in given.run])
        if given.out.resolve() == MODEL.resolve():
            pin(digest)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print(digest)


def store(
    weights: Sequence[Path], out: Path, tokenizer: Path | None, float16: str | None = None
) -> str:
    """Write the mean of ``weights`` and the tokenizer into ``out``; return the sha-256 of the
    weights. ValueError if anything is not what the reader takes, or if it is too large."""
    runs = [_checked(path) for path in weights]
    tensors = {name: np.mean([one[name] for one in runs], axis=0) for name in runs[0]}
    halves = {name for name in tensors if float16 and re.search(float16, name)}
    content = pack_weights(tensors, halves)
    if len(content) > LARGEST:
        raise ValueError(f"{len(content):,} bytes are more than {LARGEST:,}. Nothing was written.")
    found = installed_weights()
    if tokenizer is None and found is None:
        raise ValueError("give --tokenizer: the sentence encoder's package is not installed.")
    source = tokenizer or found / TOKENIZER_FILE  # type: ignore[operator]
    if file_sha256(source) != STANCE.tokenizer_sha256:
        raise ValueError(f"{source} is not the tokenizer that lpf pins. Nothing was written.")
    out.mkdir(parents=True, exist_ok=True)
    (out / WEIGHTS_FILE).write_bytes(content)
    if not (out / TOKENIZER_FILE).exists() or not (out / TOKENIZER_FILE).samefile(source):
        shutil.copyfile(source, out / TOKENIZER_FILE)
    return hashlib.sha256(content).hexdigest()


def _checked(path: Path) -> dict[str, Array]:
    try:
        tensors: dict[str, Array] = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file: {error}.") from error
    tensors.pop("embeddings.position_ids", None)
    wrong = [name for name, one in tensors.items() if one.dtype != np.float32]
    wrong += [name for name, one in tensors.items() if not np.isfinite(one).all()]
    if wrong:
        raise ValueError(f"{path}: {wrong[0]} is not float32, or has values that are not finite.")
    head = tensors.get("stance.weight")
    if head is None or head.shape != (len(STANCES), HIDDEN_WIDTH):
        raise ValueError(f"{path} has no stance.weight of {len(STANCES)} x {HIDDEN_WIDTH}.")
    try:
        build_pair_model(unpack_weights(pack_weights(tensors)), "float32")
    except KeyError as error:
        raise ValueError(f"{path} lacks the tensor {error}.") from error
    return tensors


def write_card(out: Path, digest: str, scores_file: Path, logs: list[Path]) -> None:
    """Fill in the card in ``out``. Without logs, the section about training stays as it is."""
    card = out / CARD_FILE
    if not card.exists():
        shutil.copyfile(MODEL / CARD_FILE, card)
    scores = read_scores(scores_file, digest)
    sections = score_sections(scores) | {
        "data": data_section(),
        "storage": storage_section((out / WEIGHTS_FILE).stat().st_size, digest, scores),
    }
    if logs:
        sections["training"] = training_section(logs)
    fill_card(card, sections)


def pin(digest: str) -> None:
    """Write the hash of the weights into lpf, which reads no others."""
    text = PINNED_IN.read_text(encoding="utf-8")
    changed, count = _PIN.subn(rf'\g<1>"{digest}"', text)
    if count != 1:
        raise ValueError(f"{PINNED_IN} has no hash of lpf-stance to replace.")
    PINNED_IN.write_text(changed, encoding="utf-8")


def _log(run: Path) -> Path:
    return run / "log.jsonl" if run.is_dir() else run


if __name__ == "__main__":
    main()
