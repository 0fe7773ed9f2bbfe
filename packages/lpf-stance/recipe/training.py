"""One training run: a resumable loop over the mixture, and scores on data sets left out of it.

AdamW with a warm-up and a linear decay to 0, bfloat16 products, word and position embeddings kept
as pretrained. A run is one process with one thread. The state is saved every few minutes; the same
command continues a run that was stopped, with the same result as one that was not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
from torch.nn import functional

from lpf.training.pair_encoder import (
    PairBatch,
    PairEncoder,
    load_pair_encoder,
    pair_encoder_tensors,
)
from recipe.mixture import LABELS, Mixture, Row, load

# Licences of these do not allow training weights that ship; they only judge.
LEFT_OUT = (
    "lingnli", "joci", "control_nli", "iam_stance", "scitail_devtest", "emergent", "nli4ct_2023",
    "wice_claim_devtest",
)  # fmt: skip
SAVE_SECONDS = 300
POOL = 40  # batches whose pairs are sorted by length together
TokenPair = tuple[Sequence[int], Sequence[int], int]


@dataclass(frozen=True)
class RunSettings:
    """What a run depends on. ``pairs`` are all pairs seen, over as many passes as that takes."""

    base: str
    pairs: int
    rate: float = 1.2e-4
    warm_up: float = 0.06
    weight_decay: float = 0.01
    batch_tokens: int = 1600
    longest: int = 192
    dropout: float = 0.1
    smoothing: float = 0.03
    seed: int = 0
    first_pass: int = 0  # a run that continues another begins with pairs that it has not seen


@dataclass
class PairTokens:
    """Turns texts into token ids. A pair beyond ``longest`` tokens loses the end of its evidence,
    and of its claim if that alone is too long."""

    tokenizer: Tokenizer
    longest: int

    def of(self, pairs: Sequence[tuple[str, str, int]]) -> list[TokenPair]:
        claims = self.tokenizer.encode_batch([one[0] for one in pairs], add_special_tokens=False)
        texts = self.tokenizer.encode_batch([one[1] for one in pairs], add_special_tokens=False)
        found: list[TokenPair] = []
        for claim, text, pair in zip(claims, texts, pairs, strict=True):
            kept = claim.ids[: self.longest // 2]
            room = self.longest - 3 - len(kept)
            found.append((kept, text.ids[:room] or [100], pair[2]))
        return found


def batches(
    pairs: Sequence[TokenPair], tokens: int, generator: np.random.Generator
) -> list[list[int]]:
    """Places of pairs of similar length, at most ``tokens`` per batch with padding."""
    lengths = np.array([len(one[0]) + len(one[1]) + 3 for one in pairs])
    order = generator.permutation(len(pairs))
    pool = POOL * max(1, tokens // int(lengths.mean()))
    found: list[list[int]] = []
    for start in range(0, len(order), pool):
        part = order[start : start + pool]
        part = part[np.argsort(lengths[part], kind="stable")]
        current: list[int] = []
        for place in part:
            if current and (len(current) + 1) * lengths[place] > tokens:
                found.append(current)
                current = []
            current.append(int(place))
        found.append(current)
    return [found[place] for place in generator.permutation(len(found))]


@dataclass
class StanceRun:
    """One run in ``folder``, which holds its state, its log and at the end its tensors."""

    settings: RunSettings
    folder: Path
    data: Path
    tokenizer: Path

    def run(self) -> None:
        torch.set_num_threads(1)
        self.folder.mkdir(parents=True, exist_ok=True)
        tokens = PairTokens(_tokenizer(self.tokenizer), self.settings.longest)
        network, optimiser, done = self._start()
        mixture = Mixture(self.data, self.settings.seed)
        judges = self._judges(mixture, tokens)
        self._log(settings=asdict(self.settings), start=done)
        saved = time.monotonic()
        began, first = time.monotonic(), done
        losses: list[float] = []
        for position, batch, labels in self._from(done, mixture, tokens):
            for group in optimiser.param_groups:
                group["lr"] = self._rate(position)
            losses.append(_step(network, optimiser, batch, labels, self.settings.smoothing))
            done = position + len(labels)
            if len(losses) % 250 == 0:
                rate = (done - first) / (time.monotonic() - began)
                self._log(pairs=done, loss=float(np.mean(losses[-250:])), pairs_per_second=rate)
            if time.monotonic() - saved > SAVE_SECONDS:
                self._save(network, optimiser, done)
                saved = time.monotonic()
        self._save(network, optimiser, done)
        self._log(pairs=done, scores={name: score(network, rows) for name, rows in judges.items()})
        save_file(pair_encoder_tensors(network), self.folder / "weights.safetensors")

    def _start(self) -> tuple[PairEncoder, torch.optim.AdamW, int]:
        torch.manual_seed(self.settings.seed)
        tensors = load_file(self.settings.base)
        tensors.pop("embeddings.position_ids", None)
        network = load_pair_encoder(tensors, dropout=self.settings.dropout)
        network.freeze_embeddings()
        trained = [one for one in network.parameters() if one.requires_grad]
        optimiser = torch.optim.AdamW(
            trained, lr=self.settings.rate, weight_decay=self.settings.weight_decay
        )
        done = 0
        if self._state.exists():
            state = torch.load(self._state, weights_only=True)
            network.load_state_dict(state["network"])
            optimiser.load_state_dict(state["optimiser"])
            done = state["done"]
        return network, optimiser, done

    def _from(
        self, done: int, mixture: Mixture, tokens: PairTokens
    ) -> Iterator[tuple[int, PairBatch, torch.Tensor]]:
        """Batches from position ``done`` on, each with its position. Dropout depends on it too."""
        position = 0
        number = self.settings.first_pass
        while position < self.settings.pairs:
            pairs = tokens.of(mixture.one_pass(number))
            generator = np.random.default_rng([self.settings.seed, number])
            for places in batches(pairs, self.settings.batch_tokens, generator):
                if position >= done:
                    torch.manual_seed(self.settings.seed * 1_000_003 + position)
                    rows = [pairs[place] for place in places]
                    labels = torch.tensor([row[2] for row in rows])
                    yield position, PairBatch.of([row[:2] for row in rows]), labels
                position += len(places)
                if position >= self.settings.pairs:
                    return
            number += 1

    def _rate(self, position: int) -> float:
        share = position / self.settings.pairs
        warm = self.settings.warm_up
        return self.settings.rate * min((share + 1e-4) / warm, (1.0 - share) / (1.0 - warm))

    def _judges(self, mixture: Mixture, tokens: PairTokens) -> dict[str, list[TokenPair]]:
        judges = {name: load(self.data, name) for name in LEFT_OUT}
        judges |= {f"{name} (development)": rows for name, rows in mixture.development.items()}
        return {
            name: tokens.of([row[:3] for row in _some(rows)])
            for name, rows in judges.items()
            if rows
        }

    @property
    def _state(self) -> Path:
        return self.folder / "state.pt"

    def _save(self, network: PairEncoder, optimiser: torch.optim.AdamW, done: int) -> None:
        state = {
            "network": network.state_dict(),
            "optimiser": optimiser.state_dict(),
            "done": done,
        }
        unfinished = self._state.with_suffix(".unfinished")
        torch.save(state, unfinished)
        unfinished.replace(self._state)

    def _log(self, **entry: object) -> None:
        line = json.dumps({"time": round(time.time()), **entry})
        with (self.folder / "log.jsonl").open("a") as stream:
            stream.write(line + "\n")
        print(line, flush=True)


def score(network: PairEncoder, rows: Sequence[TokenPair]) -> dict[str, float]:
    """Accuracy and NLL over the labels that the rows have: where none is neutral, the chance of
    neutral counts as neither."""
    network.eval()
    logits = torch.empty(len(rows), len(LABELS))
    order = sorted(range(len(rows)), key=lambda place: len(rows[place][0]) + len(rows[place][1]))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for start in range(0, len(order), 32):
            places = order[start : start + 32]
            logits[places] = network(PairBatch.of([rows[place][:2] for place in places]))[1].float()
    network.train()
    labels = torch.tensor([row[2] for row in rows])
    present = sorted(set(labels.tolist()))
    logits = logits[:, present]
    labels = torch.tensor([present.index(label) for label in labels.tolist()])
    return {
        "accuracy": float((logits.argmax(1) == labels).double().mean()),
        "nll": float(functional.cross_entropy(logits.double(), labels)),
    }


def _step(
    network: PairEncoder,
    optimiser: torch.optim.AdamW,
    batch: PairBatch,
    labels: torch.Tensor,
    smoothing: float,
) -> float:
    network.train()
    with torch.autocast("cpu", torch.bfloat16):
        _, logits = network(batch)
    loss = functional.cross_entropy(logits.float(), labels, label_smoothing=smoothing)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimiser.step()
    return float(loss.detach())


def _some(rows: list[Row], most: int = 600) -> list[Row]:
    if len(rows) <= most:
        return rows
    chosen = np.random.default_rng(0).choice(len(rows), most, replace=False)
    return [rows[place] for place in sorted(chosen)]


def _tokenizer(path: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
