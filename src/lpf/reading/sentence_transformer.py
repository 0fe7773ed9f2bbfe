"""Any sentence-transformers model as a reader; needs that package and the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from lpf.errors import ReaderUnavailableError
from lpf.reading.passages import windows
from lpf.reading.reader import Features, Progress, Reader, ReadRequest, as_requests

WINDOW: Final = 1024  # texts between two progress reports
SPECIAL_TOKENS: Final = 2


class SentenceTransformerReader(Reader):
    """Features from the text alone, by a model given by its folder or hub name. A text longer than
    the model's own limit is cut there: ``count_cut`` counts such texts.

    Raises ReaderUnavailableError if the package is missing, or if the model is not on this machine
    and ``allow_download`` is False. The reader ID includes a hash of all parameters and module
    settings, so that two models with the same name never share features.
    """

    def __init__(
        self,
        name: str | Path,
        *,
        device: str = "cpu",
        batch_size: int = 32,
        allow_download: bool = False,
    ) -> None:
        self._model = _load(str(name), device, allow_download)
        self._batch_size = batch_size
        self._width = int(_dimension(self._model))
        self._reader_id = _describe(str(name), self._model)

    @property
    def reader_id(self) -> str:
        return self._reader_id

    @property
    def width(self) -> int:
        return self._width

    @property
    def cuts_after(self) -> int | None:
        return self._model.max_seq_length  # type: ignore[no-any-return]

    def count_cut(self, items: Sequence[ReadRequest | str]) -> int:
        texts, most = [request.text for request in as_requests(items)], self.cuts_after
        if most is None:
            return 0
        # A token has at least one character.
        maybe = [text for text in texts if len(text) > most - SPECIAL_TOKENS]
        return sum(len(self._token_ids([text])[0]) > most - SPECIAL_TOKENS for text in maybe)

    def read_many(
        self, items: Sequence[ReadRequest | str], *, progress: Progress | None = None
    ) -> Features:
        texts = [request.text for request in as_requests(items)]
        features = np.empty((len(texts), self._width), dtype=np.float32)
        for window in windows([len(text) for text in texts], WINDOW):
            features[window] = self._encode(texts[window])
            if progress is not None:
                progress(window.stop, len(texts))
        return features

    def _token_ids(self, texts: list[str]) -> list[list[int]]:
        encoded = self._model.tokenizer(texts, add_special_tokens=False, verbose=False)
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    def _encode(self, texts: list[str]) -> Features:
        encoded: Features = self._model.encode(
            texts, batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True
        )
        return encoded


def _load(name: str, device: str, allow_download: bool) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ReaderUnavailableError(
            f"the reader {name} needs sentence-transformers.",
            hint="Install it with `pip install sentence-transformers`.",
        ) from error
    try:
        return SentenceTransformer(name, device=device, local_files_only=not allow_download)
    except OSError as error:
        raise ReaderUnavailableError(
            f"the model {name} could not be loaded: {error}.",
            hint="Give its folder, or set allow_download=True to download it from the hub.",
        ) from error


def _dimension(model: Any) -> Any:
    # Renamed in sentence-transformers 5; the old name warns there.
    if hasattr(model, "get_embedding_dimension"):
        return model.get_embedding_dimension()
    return model.get_sentence_embedding_dimension()


def _describe(name: str, model: Any) -> str:
    digest, kinds = hashlib.sha256(), set()
    for module in model:
        # Modules such as pooling have no parameters, but the features depend on their settings.
        settings = module.get_config_dict() if hasattr(module, "get_config_dict") else {}
        settings_text = json.dumps(settings, sort_keys=True, default=str)
        digest.update(f"{type(module).__name__}:{settings_text};".encode())
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(f"{key}:{tuple(tensor.shape)}:{tensor.dtype};".encode())
        digest.update(_raw_bytes(tensor))
        kinds.add(str(tensor.dtype).removeprefix("torch."))
    return (
        f"sentence-transformers:{Path(name).name}@{digest.hexdigest()[:16]}"
        f";precision={'+'.join(sorted(kinds))};max_length={model.max_seq_length}"
    )


def _raw_bytes(tensor: Any) -> Any:
    """The tensor's memory as bytes, because NumPy has no bfloat16."""
    import torch

    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
