"""The ladder: how far the reader is tuned to the labels, chosen within a stated time.

1. The untuned reader, with a linear model or networks on its features: seconds.
2. All layers of the stance reader tuned in one pass over the labels, then a linear model: minutes.
3. The same in two or three passes: tens of minutes.

Tuning starts from the untuned weights, with as many passes as there is time for. What a pass takes
is estimated from a few timed batches; if even one is too long, the reader is tuned on a random part
of the entities, unless they would be too few.

A tuned reader knows the labels that it was tuned to, so the features that it reads there say more
than those of new texts will. Therefore two readers are tuned, each on half of the training and
validation entities (groups stay together), and each reads the other half. What is fitted to these
features holds for new texts, which are read with the mean of the two readers' weights. A tuned
reader is used if the NLL of known entities is lower by more than one standard error.

What is measured and finished is kept in a folder, so that the same run again, after a kill too,
takes the same decisions.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
from filelock import FileLock, Timeout

from lpf.datasets import Dataset, DatasetEntity
from lpf.errors import ReaderError, ReaderUnavailableError, TrainingError
from lpf.reading.pair import PairReader
from lpf.reading.reader import Reader
from lpf.reading.stance import STANCE_WIDTH, STANCES, StanceReader
from lpf.reading.stored_weights import unpack_weights
from lpf.reading.tuned import WEIGHTS_FILE, TunedReader, with_tuned
from lpf.storage.atomic_files import PRIVATE_FILE, private_folder, write_atomically
from lpf.training.examples import Examples, Progress, item_requests, read_features
from lpf.training.held_out import is_learned
from lpf.training.history import SeedHistory
from lpf.training.model_choice import ChosenModel
from lpf.training.reader_choice import ReaderChoice, RungOutcome
from lpf.training.tuning import STATE, Tuning, TuningSettings, estimated_seconds
from lpf.training.tuning_data import Places, TuningData, tuning_data
from lpf.types import Float32Array, FloatArray

# With fewer labels, tuning made answers worse at every rate that was tried.
FEWEST_LABELS: Final = 1500
SHARE_STEP: Final = 0.05  # shares of the entities that are tuned on are multiples of this
SAMPLE: Final = 48  # texts that are read to estimate how long reading takes
RECORD, DONE, LOCK = "ladder.json", "tuned.json", ".lock"
HALVES: Final = ("first half", "second half")
HALVES_SEED: Final = 0


@dataclass(frozen=True)
class Rung:
    name: str
    settings: TuningSettings


@dataclass(frozen=True)
class _Step:
    """A rung that is tuned on a ``share`` of the entities."""

    rung: Rung
    share: float

    @property
    def key(self) -> str:
        return self.rung.name if self.share == 1.0 else f"{self.rung.name} {self.share:.2f}"


RUNGS: Final = (  # the first for which there is time; the last one for a part of the entities, too
    Rung("three passes", TuningSettings(6e-5, 6e-4, passes=3)),
    Rung("two passes", TuningSettings(1e-4, 1e-3, passes=2)),
    Rung("one pass", TuningSettings(1.5e-4, 1.5e-3, passes=1)),
)


@dataclass(frozen=True)
class FittedReader:
    """A model and the reader that it was chosen for: ``examples`` have its features, without words.
    ``tuned`` is None for the untuned one. ``histories`` are those of the seeds."""

    examples: Examples
    chosen: ChosenModel
    histories: tuple[SeedHistory, ...]
    tuned: TunedReader | None = None


@dataclass
class LadderRecord:
    """What the decisions depend on, in seconds: the time before the first rung, one fit on given
    features, reading all texts, the estimate of tuning on all entities once, and by rung and share
    of the entities the time that everything took."""

    before: float
    fit: float
    reading: float
    one_pass: float | None = None
    taken: dict[str, float] = field(default_factory=dict)

    @property
    def after_tuning(self) -> float:
        """Reading with the tuned reader, and a fit."""
        return self.reading + self.fit


@dataclass(frozen=True)
class LadderSteps:
    """Functions that are called as the ladder is climbed: with the step that begins, and with the
    texts that are read or the pairs that are tuned on, done and in all."""

    on_status: Callable[[str], None] | None = None
    on_texts: Progress | None = None
    on_pairs: Progress | None = None

    def status(self, step: str) -> None:
        if self.on_status is not None:
            self.on_status(step)


@dataclass(frozen=True)
class Ladder:
    """``fit`` chooses a model on the features of a reader, which has the given ID. ``spent``
    seconds of ``budget`` are gone, ``fit_seconds`` of them for such a fit. ``folder`` keeps what is
    finished, and ``features`` what tuned readers read (None: nothing is kept)."""

    reader: PairReader
    predicates: tuple[str, ...]
    fit: Callable[[Examples, str], FittedReader]
    budget: float
    spent: float
    fit_seconds: float
    folder: Path | None = None
    features: Path | None = None
    steps: LadderSteps = LadderSteps()

    def climb(self, untuned: FittedReader) -> tuple[FittedReader, ReaderChoice]:
        """The best rung, and what was tried."""
        obstacle = self._obstacle(untuned.examples)
        if obstacle is not None:
            return untuned, ReaderChoice(not_tried=obstacle)
        try:
            weights = self._stance.weights()
        except ReaderUnavailableError as error:  # an export of them is enough to read with
            return untuned, ReaderChoice(not_tried=error.message.removesuffix("."))
        self.steps.status("preparing to tune the reader")
        with self._alone():
            return self._best_rung(untuned, weights)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Processes that tune on the same data wait for the one that began."""
        if self.folder is None:
            yield
            return
        private_folder(self.folder)
        lock = FileLock(self.folder / LOCK, mode=PRIVATE_FILE)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            self.steps.status("waiting for another process that tunes on the same data")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _best_rung(
        self, untuned: FittedReader, weights: Mapping[str, Float32Array]
    ) -> tuple[FittedReader, ReaderChoice]:
        data = self._data(untuned.examples)
        record = self._record(untuned.examples)
        best = untuned
        in_folds = untuned.chosen.in_folds is not None
        choice = ReaderChoice(float(self._losses(untuned, in_folds).mean()))
        left, labels = self.budget - record.before, self._label_count(untuned.examples)
        for rung in RUNGS:
            estimate = rung.settings.passes * self._pass_seconds(record, weights, data)
            share = affordable_share(left - record.after_tuning, estimate)
            share = 1.0 if rung.name in record.taken else share  # what is finished costs no time
            least = FEWEST_LABELS / labels if rung == RUNGS[-1] else 1.0
            if share < least:
                why = f"the budget of {self.budget:g} s is too short"
                seconds = estimate + record.after_tuning
                choice = choice.with_rung(RungOutcome(rung.name, seconds, skipped=why))
                continue
            step = _Step(rung, share)
            fitted = self._climbed(step, weights, data, untuned.examples, record)
            seconds = record.taken[step.key]
            both = in_folds and fitted.chosen.in_folds is not None
            tried, compared = self._losses(fitted, both), self._losses(untuned, both)
            choice = choice.with_rung(RungOutcome.tried(rung.name, seconds, tried, compared, share))
            best = fitted if choice.chosen == rung.name else best
            break  # shorter tuning brought less
        return best, choice

    def _losses(self, fitted: FittedReader, in_folds: bool) -> FloatArray:
        """Of all known entities in folds, or else of validation entities."""
        chosen = fitted.chosen
        of = chosen.known_losses if in_folds else chosen.held_out_losses
        return of(self.predicates)

    @property
    def _stance(self) -> StanceReader:
        stance = self.reader.stance
        assert isinstance(stance, StanceReader)  # or there would be no ladder
        return stance

    def _obstacle(self, examples: Examples) -> str | None:
        """Why there is nothing to tune on, if there is not."""
        dataset, count = examples.dataset, self._label_count(examples)
        if self.budget == 0:
            return "the budget is 0"
        if count < FEWEST_LABELS:
            return (
                f"{count:,} labels of training entities with a claim, or of their items; below "
                f"{FEWEST_LABELS:,}, tuning makes answers worse"
            )
        has_claim = np.array([entity.claim is not None for entity in dataset])
        read = examples.features[:, -len(STANCES) :].any(axis=1)
        if (read & ~has_claim[examples.segments.owner]).any():
            return "items of one entity have different claims"
        return None

    def _label_count(self, examples: Examples) -> int:
        """Labels of training entities that have a claim, or of their items."""
        return sum(
            self._labels(entity)
            for entity in examples.dataset
            if entity.split == "train" and entity.claim is not None
        )

    def _labels(self, entity: DatasetEntity) -> int:
        """One per item with a label of its own; if there are none, that of the entity."""
        own = sum(any(name in item.labels for name in self.predicates) for item in entity.evidence)
        return own or any(name in entity.labels for name in self.predicates)

    def _data(self, examples: Examples) -> tuple[TuningData, ...]:
        """Of the two halves."""
        validation = examples.split("validation")
        assert validation is not None  # a data set without them was refused
        return tuple(
            tuning_data(examples.select(places), validation, self.predicates, self._stance)
            for places in halves(examples.dataset)
        )

    def _record(self, examples: Examples) -> LadderRecord:
        """As it was kept, or with times that are measured now."""
        path = None if self.folder is None else self.folder / RECORD
        if path is not None and path.is_file():
            try:
                return LadderRecord(**json.loads(path.read_bytes()))
            except (ValueError, TypeError) as error:
                raise _damaged(path, error) from error
        dataset = examples.dataset
        requests = item_requests(dataset)
        places = np.linspace(0, len(requests) - 1, min(SAMPLE, len(requests))).astype(int)
        sample = [requests[place] for place in places]
        self._stance.read_many(sample[:1])  # opens it, which takes a second
        began = time.monotonic()
        self._stance.read_many(sample)
        reading = (time.monotonic() - began) / len(sample) * len(requests)
        return LadderRecord(self.spent, self.fit_seconds, reading)

    def _keep(self, record: LadderRecord) -> None:
        if self.folder is not None:
            write_atomically(self.folder / RECORD, json.dumps(asdict(record), indent=1).encode())

    def _pass_seconds(
        self,
        record: LadderRecord,
        weights: Mapping[str, Float32Array],
        data: Sequence[TuningData],
    ) -> float:
        """Seconds of one pass over all entities."""
        if record.one_pass is None:
            once = replace(RUNGS[-1].settings, passes=1)
            record.one_pass = sum(estimated_seconds(weights, half, once) for half in data)
            self._keep(record)
        return record.one_pass

    def _climbed(
        self,
        step: _Step,
        weights: Mapping[str, Float32Array],
        data: Sequence[TuningData],
        examples: Examples,
        record: LadderRecord,
    ) -> FittedReader:
        pairs = [self._tuned(step, place, weights, half, record) for place, half in enumerate(data)]
        seconds = sum(taken for _, taken in pairs)
        began = time.monotonic()
        whole = self._joined([half for half, _ in pairs], step)
        features = examples.features.copy()
        dataset, known = examples.dataset, halves(examples.dataset)
        # Each reader reads the half that it was not tuned on.
        read = [
            (pairs[1][0], known[0]),
            (pairs[0][0], known[1]),
            (whole, np.setdiff1d(np.arange(len(dataset)), np.concatenate(known))),
        ]
        self.steps.status(f"reading the texts again: {step.rung.name} tuned")
        for tuned, places in read:
            if len(places):
                stance = self._pair_reader(tuned).stance
                assert stance is not None
                features[examples.rows(places), -STANCE_WIDTH:] = read_features(
                    dataset.select(places.tolist()),
                    stance,
                    folder=self.features,
                    progress=self.steps.on_texts,
                )
        fitted = self.fit(replace(examples, features=features), self._pair_reader(whole).reader_id)
        record.taken.setdefault(step.key, seconds + time.monotonic() - began)
        self._keep(record)
        return replace(fitted, tuned=whole)

    def _pair_reader(self, tuned: TunedReader) -> PairReader:
        reader = with_tuned(self.reader, tuned)
        assert isinstance(reader, PairReader)
        return reader

    def _joined(self, both: Sequence[TunedReader], step: _Step) -> TunedReader:
        """The reader for new texts: the mean of both halves' weights."""
        first, second = (unpack_weights(one.files()[WEIGHTS_FILE]) for one in both)
        mean = {name: (first[name] + second[name]) / 2 for name in first}
        on = [one.card["tuned_on"] for one in both]
        made = {
            "tuned_on": {name: sum(one[name] for one in on) for name in on[0]},
            "halves": [one.digest for one in both],
            "predicates": list(self.predicates),
            "settings": asdict(step.rung.settings),
        }
        return TunedReader.pack(mean, self._stance, made)

    def _tuned(
        self,
        step: _Step,
        place: int,
        weights: Mapping[str, Float32Array],
        data: TuningData,
        record: LadderRecord,
    ) -> tuple[TunedReader, float]:
        """The reader tuned on one half, and the seconds that it took; from its folder if it is
        finished."""
        folder = None
        if self.folder is not None:
            folder = self.folder / f"{step.key} {HALVES[place]}".replace(" ", "-")
        if folder is not None and (folder / DONE).is_file():
            try:
                done = json.loads((folder / DONE).read_bytes())
                return TunedReader.load(folder, done["reader"]).in_memory(), done["seconds"]
            except (ValueError, TypeError, KeyError, ReaderError) as error:
                raise _damaged(folder / DONE, error) from error
        rung = step.rung
        assert record.one_pass is not None  # the share was computed from it
        minutes = step.share * rung.settings.passes * record.one_pass / 60 / len(HALVES)
        self.steps.status(
            f"tuning the reader: {rung.name}, {HALVES[place]}, about {minutes:.1f} min"
        )
        data = data.sample(step.share, np.random.default_rng(rung.settings.seed))
        tuning = Tuning(weights, data, rung.settings, folder)
        made = {
            "tuned_on": {"entities": data.entities, "pairs": len(data.pairs)},
            "predicates": list(self.predicates),
            "settings": asdict(rung.settings),
        }
        try:
            tensors = tuning.run(self.steps.on_pairs)
        except KeyboardInterrupt:
            saved = folder is not None and (folder / STATE).exists()
            how = "continues from what was saved" if saved else "starts again"
            raise KeyboardInterrupt(f"interrupted while tuning; the same command {how}.") from None
        tuned = TunedReader.pack(tensors, self._stance, made)
        if folder is not None:
            for name, content in tuned.files().items():
                write_atomically(folder / name, content)
            done = {"reader": tuned.digest, "seconds": tuning.seconds}
            write_atomically(folder / DONE, json.dumps(done).encode())
            (folder / STATE).unlink(missing_ok=True)
        return tuned, tuning.seconds


def halves(dataset: Dataset) -> tuple[Places, Places]:
    """The positions of the training and validation entities in two halves. Groups stay together;
    the same entities are always divided in the same way."""
    known = [place for place, entity in enumerate(dataset) if is_learned(entity)]
    entities = [dataset.entities[place] for place in known]
    names = [
        f"entity {one.entity_id}" if one.group_id is None else f"group {one.group_id}"
        for one in entities
    ]
    sizes = Counter(names)
    groups = sorted(sizes)
    side, filled = {}, [0, 0]
    for place in np.random.default_rng(HALVES_SEED).permutation(len(groups)).tolist():
        smaller = int(filled[1] < filled[0])
        side[groups[place]] = smaller
        filled[smaller] += sizes[groups[place]]
    which = np.array([side[name] for name in names], dtype=np.intp)
    places = np.array(known, dtype=np.intp)
    return places[which == 0], places[which == 1]


def affordable_share(seconds: float, whole: float) -> float:
    """The share of the entities that can be tuned on in ``seconds``, if all take ``whole``."""
    if seconds >= whole:
        return 1.0
    if seconds <= 0.0:
        return 0.0
    return round(SHARE_STEP * math.floor(seconds / whole / SHARE_STEP + 1e-9), 2)


def _damaged(path: Path, error: Exception) -> TrainingError:
    return TrainingError(
        f"{path} is damaged ({error}). Nothing was trained; remove the folder {path.parent} to "
        "tune again."
    )


def ladder_reader(reader: Reader | None) -> PairReader | None:
    """``reader`` if it reads stances with weights that can be tuned, else None."""
    if isinstance(reader, PairReader) and type(reader.stance) is StanceReader:
        return reader
    return None
