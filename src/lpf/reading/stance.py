"""The stance reader: does a text support its claim, refute it, or say neither?

A pair encoder reads ``[CLS] claim [SEP] text [SEP]`` in one pass, so every word of the text is read
in the light of the claim. Its weights come with the package ``lpf-stance``, whose card says what it
was trained on and how well it reads; it runs on ONNX Runtime, without torch.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from lpf.errors import EvidenceError, ReaderUnavailableError
from lpf.reading.export import (
    MODEL_FILE,
    STANCE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    EncoderSource,
    export_encoder,
    genuine_bytes,
    installed_weights,
)
from lpf.reading.graph import GRAPH_VERSION, Array, Precision
from lpf.reading.minilm import (
    CLASS_TOKEN,
    SEPARATOR_TOKEN,
    Tokens,
    check_settings,
    open_session,
    open_tokenizer,
    run_batches,
    token_batches,
    usable_processors,
)
from lpf.reading.passages import passages, token_ids, windows
from lpf.reading.reader import (
    NOTHING_READ,
    Features,
    Progress,
    Reader,
    ReadRequest,
    as_requests,
    check_text,
)
from lpf.reading.stored_weights import unpack_weights

if TYPE_CHECKING:
    from tokenizers import Tokenizer

STANCES: Final = ("supports", "refutes", "neutral")
HIDDEN_WIDTH: Final = 384
STANCE_WIDTH: Final = HIDDEN_WIDTH + len(STANCES)
MAX_LENGTH: Final = 192  # as in training; a longer text is read in passages
SPECIAL_TOKENS: Final = 3
# Of a text with more passages, those that share most words with the claim are read.
MOST_PASSAGES: Final = 16
WINDOW: Final = 2048  # pairs tokenised together

Pair = tuple[Tokens, Tokens]  # token ids of a claim and of a passage


def stance_is_installed() -> bool:
    """True if the weights of the stance reader are installed."""
    return installed_weights(STANCE) is not None


class StanceReader(Reader):
    """Features [387] of a text with its claim: the hidden vector [384] and the logits of
    ``STANCES`` [3]. All are 0 for an item without a claim.

    A text that does not fit into ``max_length`` tokens beside its claim is read in passages, each
    against the claim; passages that say something about it count more. Only the first half of
    ``max_length`` tokens of a claim is read. ``precision="int8"`` is faster and a quarter of
    the size. The weights are opened when the first claim is read, with the errors of
    ``export_encoder``. A reader may be shared by threads.
    """

    def __init__(
        self,
        *,
        precision: Precision = "float32",
        max_length: int = MAX_LENGTH,
        threads: int | None = None,
        cache_dir: Path | str | None = None,
        weights_dir: Path | str | None = None,
        source: EncoderSource = STANCE,
    ) -> None:
        self.threads = usable_processors() if threads is None else threads
        check_settings(precision, max_length, self.threads)
        self._export = partial(
            export_encoder, source, cache_dir, precision=precision, weights_dir=weights_dir
        )
        self.source = source
        self._weights_dir = weights_dir
        self._max_length = max_length
        self._lock = threading.Lock()
        self._opened: tuple[Any, Tokenizer] | None = None
        self._id = (
            f"{source.identity};precision={precision};max_length={max_length};graph={GRAPH_VERSION}"
        )

    @property
    def reader_id(self) -> str:
        return self._id

    @property
    def width(self) -> int:
        return STANCE_WIDTH

    @property
    def uses_claim(self) -> bool:
        return True

    def _open(self) -> tuple[Any, Tokenizer]:
        """The session and the tokenizer."""
        with self._lock:
            if self._opened is None:
                self._opened = self._load()
            return self._opened

    def _load(self) -> tuple[Any, Tokenizer]:
        folder = self._export()
        return open_session(folder / MODEL_FILE), open_tokenizer(folder / TOKENIZER_FILE)

    def weights(self) -> dict[str, Array]:
        """The weights, for training. ReaderUnavailableError if only an export of them is here."""
        found = installed_weights(self.source) if self._weights_dir is None else self._weights_dir
        if found is None:
            raise ReaderUnavailableError(
                f"the weights of {self.source.name} are not installed.",
                hint=self.source.install_hint,
            )
        path = Path(found) / WEIGHTS_FILE
        return unpack_weights(genuine_bytes(path, self.source.weights_sha256, self.source))

    def tokenizer_bytes(self) -> bytes:
        """The content of the tokenizer's file."""
        return (self._export() / TOKENIZER_FILE).read_bytes()

    def read_many(
        self, items: Sequence[ReadRequest | str], *, progress: Progress | None = None
    ) -> Features:
        requests = as_requests(items)
        features = np.zeros((len(requests), STANCE_WIDTH), np.float32)
        for index, request in enumerate(requests):
            if request.claim is not None:
                check_text(request.claim, "claim", index)
        done = 0
        for window in windows([len(request.text) for request in requests], WINDOW):
            places = [
                place
                for place in range(window.start, window.stop)
                if requests[place].claim is not None
            ]
            done += window.stop - window.start - len(places)
            if not places and progress is not None:
                progress(done, len(requests))
            for size in self._read([requests[place] for place in places], places, features):
                done += size
                if progress is not None:
                    progress(done, len(requests))
        return features

    def _read(
        self, requests: list[ReadRequest], places: list[int], features: Features
    ) -> Iterator[int]:
        """Fill the rows of ``features`` at ``places``; yield the number of items finished."""
        if not requests:
            return
        pairs, owners = self._pairs(requests, places)
        rows = np.empty((len(pairs), STANCE_WIDTH), np.float32)
        done = finished = 0
        for size in self._run(pairs, rows):
            done += size
            if (now := done * len(requests) // len(pairs)) > finished and done < len(pairs):
                yield now - finished
                finished = now
        starts = np.searchsorted(owners, np.arange(len(requests) + 1))
        for place, first, last in zip(places, starts[:-1], starts[1:], strict=True):
            features[place] = combined_passages(rows[first:last])
        if len(requests) > finished:
            yield len(requests) - finished

    def token_pairs(self, requests: Sequence[ReadRequest]) -> list[Pair]:
        """One pair per item, which has a claim: the whole text or, of a long one, the passage that
        shares most with the claim. For training."""
        found: list[Pair] = []
        for start in range(0, len(requests), WINDOW):
            part = list(requests[start : start + WINDOW])
            pairs, owners = self._pairs(part, list(range(start, start + len(part))))
            starts = np.searchsorted(owners, np.arange(len(part) + 1))
            for first, last in pairwise(starts.tolist()):
                texts = [np.asarray(text, np.int32) for _, text in pairs[first:last]]
                claim = pairs[first][0]
                found.append((claim, most_relevant(claim, texts, 1)[0]))
        return found

    def _pairs(
        self, requests: list[ReadRequest], places: list[int]
    ) -> tuple[list[Pair], npt.NDArray[np.intp]]:
        """A pair per passage, and the number of the request that each belongs to."""
        distinct = list(dict.fromkeys(request.claim or "" for request in requests))
        found = zip(distinct, self._token_ids(distinct), strict=True)
        claims = {claim: ids[: self._max_length // 2] for claim, ids in found}
        pairs: list[Pair] = []
        owners: list[int] = []
        for number, (place, request) in enumerate(zip(places, requests, strict=True)):
            claim = claims[request.claim or ""]
            text = token_ids(request.text, self._token_ids)
            for role, count in (("claim", len(claim)), ("text", len(text))):
                if not count:
                    raise EvidenceError(
                        "has no readable character.",
                        field=f"items[{place}].{role}",
                        hint=NOTHING_READ,
                    )
            parts = passages(text, self._max_length - SPECIAL_TOKENS - len(claim))
            chosen = most_relevant(claim, parts) if len(parts) > MOST_PASSAGES else parts
            pairs += [(claim, part) for part in chosen]
            owners += [number] * len(chosen)
        return pairs, np.array(owners)

    def _token_ids(self, texts: list[str]) -> list[list[int]]:
        _, tokenizer = self._open()
        encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encoded]

    def _run(self, pairs: Sequence[Pair], rows: Features) -> Iterator[int]:
        session, _ = self._open()

        def work(batch: list[int]) -> None:
            rows[batch] = session.run(None, _padded([pairs[place] for place in batch]))[0]

        lengths = [len(claim) + len(text) + SPECIAL_TOKENS for claim, text in pairs]
        return run_batches(work, token_batches(lengths), self.threads)


def _padded(pairs: Sequence[Pair]) -> dict[str, npt.NDArray[np.integer]]:
    starts = np.array([len(claim) + 2 for claim, _ in pairs], np.int64)
    lengths = starts + np.array([len(text) + 1 for _, text in pairs])
    ids = np.zeros((len(pairs), int(lengths.max())), np.int32)
    for row, (claim, text) in enumerate(pairs):
        start, end = starts[row], lengths[row]
        ids[row, 0] = CLASS_TOKEN
        ids[row, 1 : start - 1] = claim
        ids[row, [start - 1, end - 1]] = SEPARATOR_TOKEN
        ids[row, start : end - 1] = text
    return {"ids": ids, "starts": starts, "lengths": lengths}


def stance_probabilities(features: Features, start: int = HIDDEN_WIDTH) -> npt.NDArray[np.float64]:
    """P(stance) [N, 3] from features whose logits are in the columns from ``start`` on, by default
    those of ``StanceReader``. Uncalibrated."""
    logits = features[:, start : start + len(STANCES)].astype(np.float64)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: npt.NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return found


def relevance(features: Features, start: int) -> npt.NDArray[np.float64]:
    """How much each text says about its claim [N], from 0 to 1: (1 - P(neutral))². ``start`` is the
    column of the first stance logit. 1 for an item without a claim, whose logits are all 0."""
    neutral = stance_probabilities(features, start)[:, STANCES.index("neutral")]
    has_claim = features[:, start : start + len(STANCES)].any(axis=1)
    found: npt.NDArray[np.float64] = np.where(has_claim, (1.0 - neutral) ** 2, 1.0)
    return found


def stances_of(features: Features, start: int) -> npt.NDArray[np.float64]:
    """P(stance) [N, 3] towards the claim; an item without a claim, whose logits are all 0, is
    neutral."""
    found = stance_probabilities(features, start)
    found[~features[:, start : start + len(STANCES)].any(axis=1)] = (0.0, 0.0, 1.0)
    return found


def combined_passages(rows: Features) -> Features:
    """One row from those of a text's passages [P, 387]: their mean, weighted by the chance that a
    passage says something about the claim."""
    if len(rows) == 1:
        first: Features = rows[0]
        return first
    weights = 1.0 - stance_probabilities(rows)[:, STANCES.index("neutral")] + 1e-6
    row: Features = ((weights / weights.sum()) @ rows.astype(np.float64)).astype(np.float32)
    return row


def most_relevant(
    claim: Tokens, parts: Sequence[npt.NDArray[np.int32]], count: int = MOST_PASSAGES
) -> list[npt.NDArray[np.int32]]:
    """The ``count`` passages that share most with the claim, in their order. A token that few
    passages have counts more."""
    wanted = np.unique(np.asarray(claim))
    present = np.stack([np.isin(wanted, part) for part in parts])
    rarity = np.log((1.0 + len(parts)) / (1.0 + present.sum(axis=0)))
    best = np.argsort(-(present @ rarity), kind="stable")[:count]
    return [parts[place] for place in sorted(best)]
