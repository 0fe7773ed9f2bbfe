"""The default reader: all-MiniLM-L6-v2 on ONNX Runtime, without torch or transformers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np
import numpy.typing as npt

from lpf.errors import ConfigError, EvidenceError, ReaderError
from lpf.reading.export import MINILM, MODEL_FILE, TOKENIZER_FILE, export_encoder
from lpf.reading.graph import GRAPH_VERSION, Precision
from lpf.reading.passages import CHARACTERS_AT_ONCE, PIECE, combined, passages, token_ids, windows
from lpf.reading.reader import (
    IN_PASSAGES,
    NOTHING_READ,
    Features,
    Progress,
    Reader,
    ReadRequest,
    as_requests,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer


Tokens = Sequence[int] | npt.NDArray[np.int32]
SPECIAL_TOKENS: Final = 2
CLASS_TOKEN, SEPARATOR_TOKEN = 101, 102  # begin and end what the model reads

# Measured on 2 cores: 192 to 384 tokens are equally fast, larger batches exceed the L2 cache.
TOKEN_BUDGET = 256


def token_batches(lengths: Sequence[int], budget: int = TOKEN_BUDGET) -> list[list[int]]:
    """Indices grouped by similar length, longest first, with at most ``budget`` tokens per group
    after padding. An item longer than the budget is a group of its own."""
    batches: list[list[int]] = []
    room = 0
    # Longest first: the last batches are then the cheap ones, so no thread waits long.
    for index in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if room == 0:
            batches.append([])
            room = max(1, budget // lengths[index])
        batches[-1].append(index)
        room -= 1
    return batches


def pad(tokens: Sequence[Tokens]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Token ids [B, S] with a special token at both ends, padded with zeros on the right, and
    their lengths [B]."""
    lengths = np.array([len(row) + SPECIAL_TOKENS for row in tokens], dtype=np.int64)
    ids = np.zeros((len(tokens), int(lengths.max())), dtype=np.int32)
    for position, row in enumerate(tokens):
        ids[position, 0] = CLASS_TOKEN
        ids[position, 1 : len(row) + 1] = row
        ids[position, len(row) + 1] = SEPARATOR_TOKEN
    return ids, lengths


def run_batches(
    work: Callable[[list[int]], None], batches: Sequence[list[int]], threads: int
) -> Iterator[int]:
    """Run ``work`` on each batch; yield the size of each as it is finished."""
    if threads == 1 or len(batches) <= 1:
        for batch in batches:
            work(batch)
            yield len(batch)
        return
    with ThreadPoolExecutor(min(threads, len(batches)), thread_name_prefix="lpf-read") as pool:
        sizes = {pool.submit(work, batch): len(batch) for batch in batches}
        try:
            for future in as_completed(sizes):
                future.result()
                yield sizes[future]
        finally:
            # After an error or an interrupt the remaining batches are not needed.
            pool.shutdown(cancel_futures=True)


WIDTH: Final = 384
MAX_LENGTH: Final = 256  # what sentence-transformers uses for this model
LONGEST_MAX_LENGTH: Final = 512  # number of position embeddings
# Texts tokenised together: enough to group by length, few enough for memory.
WINDOW: Final = 4096


class MiniLMReader(Reader):
    """Features [384] of length 1 from the text alone; claims and fields are ignored.

    A text of more than ``max_length`` tokens is read in ``passages`` of nearly equal length, and
    its features are their mean, weighted by tokens and scaled to length 1. With
    ``passages=False`` it is cut after ``max_length`` tokens, as in sentence-transformers; shorter
    texts have the same features either way.
    ``precision="int8"`` is about 1.8 times as fast on CPUs with VNNI and a quarter of the size.
    Over 1500 evidence sentences, the cosine with the float32 features was 0.9971 on average and at
    least 0.990; the cosine between two texts changed by 0.006 on average and at most 0.05.

    The first use exports the weights to ``cache_dir`` (default: ``$LPF_CACHE_DIR``, or the user's
    cache folder). ``threads`` defaults to the number of available processors. A reader may be
    shared by threads. Raises the errors of ``export_minilm``.
    """

    def __init__(
        self,
        *,
        precision: Precision = "float32",
        max_length: int = MAX_LENGTH,
        passages: bool = True,
        threads: int | None = None,
        cache_dir: Path | str | None = None,
        weights_dir: Path | str | None = None,
    ) -> None:
        self._threads = usable_processors() if threads is None else threads
        check_settings(precision, max_length, self._threads)
        folder = export_encoder(MINILM, cache_dir, precision=precision, weights_dir=weights_dir)
        self._session = open_session(folder / MODEL_FILE)
        self._tokenizer = open_tokenizer(folder / TOKENIZER_FILE)
        self._max_length, self._passages = max_length, passages
        self._plain_id = (
            f"{MINILM.identity};precision={precision};max_length={max_length};graph={GRAPH_VERSION}"
        )

    @property
    def reader_id(self) -> str:
        return f"{self._plain_id}{IN_PASSAGES}" if self._passages else self._plain_id

    @property
    def width(self) -> int:
        return WIDTH

    @property
    def cuts_after(self) -> int | None:
        return None if self._passages else self._max_length

    def pinned(self, reader_id: str) -> MiniLMReader:
        """This reader, or the same one with long texts cut (or not), if that has the given id."""
        other = copy(self)
        other._passages = not self._passages
        return other if other.reader_id == reader_id else self

    def newest(self) -> MiniLMReader:
        return self if self._passages else self.pinned(f"{self._plain_id}{IN_PASSAGES}")

    def count_cut(self, items: Sequence[ReadRequest | str]) -> int:
        texts = [request.text for request in as_requests(items)]
        if self._passages:
            return 0
        most = self._max_length - SPECIAL_TOKENS
        # A token has at least one character.
        maybe = [text for text in texts if len(text) > most]
        return sum(len(token_ids(text, self._token_ids, most + 1)) > most for text in maybe)

    def read_many(
        self, items: Sequence[ReadRequest | str], *, progress: Progress | None = None
    ) -> Features:
        texts = [request.text for request in as_requests(items)]
        features = np.empty((len(texts), WIDTH), dtype=np.float32)
        done = 0
        for window in windows([len(text) for text in texts], WINDOW):
            tokens = self._tokenise(texts[window], window.start)
            for size in self._run(tokens, features[window]):
                done += size
                if progress is not None:
                    progress(done, len(texts))
        return features

    def _tokenise(self, texts: list[str], start: int) -> list[Tokens]:
        """Token ids of each text, without special tokens; at most ``max_length`` with them if long
        texts are cut."""
        most = None if self._passages else self._max_length - SPECIAL_TOKENS
        short = [place for place, text in enumerate(texts) if len(text) <= PIECE]
        tokens: list[Tokens] = [[]] * len(texts)
        lengths = [len(texts[place]) for place in short]
        for window in windows(lengths, len(texts), CHARACTERS_AT_ONCE):
            found = self._token_ids([texts[place] for place in short[window]])
            for place, ids in zip(short[window], found, strict=True):
                tokens[place] = ids[:most]
        for place, text in enumerate(texts):
            if len(text) > PIECE:
                tokens[place] = token_ids(text, self._token_ids, most)
            if not len(tokens[place]):
                raise EvidenceError(
                    "has no readable character.",
                    field=f"items[{start + place}].text",
                    hint=NOTHING_READ,
                )
        return tokens

    def _token_ids(self, texts: list[str]) -> list[list[int]]:
        encoded = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encoded]

    def _run(self, tokens: Sequence[Tokens], features: Features) -> Iterator[int]:
        """Fill ``features`` [N, 384]; yield the number of items finished each time."""
        most = self._max_length - SPECIAL_TOKENS
        long = [place for place, row in enumerate(tokens) if len(row) > most]
        # Apart from the long texts, so that their batches are those of short texts alone.
        short = [place for place, row in enumerate(tokens) if len(row) <= most]
        yield from self._embed([tokens[place] for place in short], features, short)
        parts = [passages(tokens[place], most) for place in long]
        rows = np.empty((sum(map(len, parts)), WIDTH), np.float32)
        done = finished = 0
        for size in self._embed([one for part in parts for one in part], rows, range(len(rows))):
            done += size
            # In proportion: a text is finished when the last of its passages is.
            if (now := done * len(long) // len(rows)) > finished and done < len(rows):
                yield now - finished
                finished = now
        start = 0
        for place, part in zip(long, parts, strict=True):
            own = rows[start : start + len(part)]
            features[place] = combined(own, [len(one) for one in part])
            start += len(part)
        if len(long) > finished:
            yield len(long) - finished

    def _embed(
        self, tokens: Sequence[Tokens], features: Features, places: Sequence[int]
    ) -> Iterator[int]:
        """Write the features of each row of tokens to its place; yield the size of each batch."""

        def work(batch: list[int]) -> None:
            ids, lengths = pad([tokens[index] for index in batch])
            outputs = self._session.run(None, {"ids": ids, "lengths": lengths})
            features[[places[index] for index in batch]] = outputs[0]

        batches = token_batches([len(row) + SPECIAL_TOKENS for row in tokens])
        return run_batches(work, batches, self._threads)


def check_settings(precision: str, max_length: int, threads: int) -> None:
    if precision not in get_args(Precision):
        raise ConfigError(
            f"must be one of {get_args(Precision)}, got {precision!r}.", field="precision"
        )
    if not SPECIAL_TOKENS < max_length <= LONGEST_MAX_LENGTH:
        raise ConfigError(
            f"must be from {SPECIAL_TOKENS + 1} to {LONGEST_MAX_LENGTH}, got {max_length}.",
            field="max_length",
        )
    if threads < 1:
        raise ConfigError(f"must be at least 1, got {threads}.", field="threads")


def usable_processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def open_session(model: Path | bytes, name: object = None) -> Any:
    """``model`` is a file or its content; ``name`` is what errors call the latter."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # Several batches run in parallel instead of one batch on all threads: measured 10 % faster on
    # two processors, and a session without threads of its own survives a fork.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime has many error classes, none of them public
        raise ReaderError(
            f"onnxruntime {onnxruntime.__version__} cannot open {name or model}: {error}.",
            hint="Upgrade it with `pip install -U onnxruntime`.",
        ) from error


def open_tokenizer(path: Path) -> Tokenizer:
    return parse_tokenizer(path.read_bytes())


def parse_tokenizer(content: bytes) -> Tokenizer:
    """From the content of a tokenizer's file."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(content.decode())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
