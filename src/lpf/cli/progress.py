"""Progress of training runs and evaluations, on standard error and only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lpf.cli.safe_output import one_line, safe_streams
from lpf.cli.terminal import Output

if TYPE_CHECKING:
    from lpf.training.history import Epoch
    from lpf.training.stage_one import StageOneState
    from lpf.workspace.training_runs import TrainingCallbacks


BAR = 30
SPARKS = "▁▂▃▄▅▆▇█"
MOST_SPARKS = 40


@contextmanager
def training_progress() -> Iterator[TrainingCallbacks]:
    """A display that disappears when done; nothing if standard error is not a terminal."""
    from lpf.workspace.training_runs import TrainingCallbacks

    if not sys.stderr.isatty():
        yield TrainingCallbacks()
        return
    display = TrainingDisplay()
    live = Live(display, console=Output(stderr=True), transient=True, refresh_per_second=8)
    # The display redirects both streams to print above itself, so they are made safe again.
    with live, safe_streams():
        yield TrainingCallbacks(display.reading, display.epoch, display.status, display.tuning)


@dataclass
class TrainingDisplay:
    """The current step, a bar, and during a search the scores of the best seed."""

    step: str = "opening the workspace"
    done: int = 0
    total: int | None = None
    unit: str = ""
    running: str = ""
    best: str = ""
    losses: Sequence[float] = field(default_factory=tuple)

    def reading(self, done: int, total: int) -> None:
        self.done, self.total, self.unit = done, total, "texts"

    def tuning(self, done: int, total: int) -> None:
        self.done, self.total, self.unit = done, total, "texts, in all passes"

    def status(self, step: str) -> None:
        self.step, self.total, self.running, self.losses = step, None, "", ()

    def epoch(self, done: int, total: int, state: StageOneState) -> None:
        self.done, self.total, self.unit = done, total, "epochs"
        seeds = len(state.active)
        self.running = f"{seeds} of {len(state.seeds)} still running"
        epochs = best_seed(state.epochs)
        best = min(epochs, key=lambda epoch: epoch.validation_loss)
        self.best = (
            f"best so far: accuracy {best.validation_accuracy:.4f}, loss {best.validation_loss:.4f}"
        )
        self.losses = [epoch.validation_loss for epoch in epochs]

    def __rich__(self) -> RenderableType:
        lines: list[RenderableType] = [Text(one_line(self.step))]
        if self.total is not None:
            lines.append(self._bar(self.total))
        if self.total is not None and self.losses:
            lines.append(Text(f"{self.best}  {sparkline(self.losses)}", style="dim"))
        return Group(*lines)

    def _bar(self, total: int) -> Table:
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=max(1, total), completed=self.done, width=BAR)
        row.add_row(bar, Text(f"{self.done:,}/{total:,} {self.unit}"), Text(self.running))
        return row


def best_seed(by_seed: Sequence[Sequence[Epoch]]) -> Sequence[Epoch]:
    """The epochs of the best seed so far: by accuracy at its lowest loss, then by that loss."""

    def rank(epochs: Sequence[Epoch]) -> tuple[float, float]:
        best = min(epochs, key=lambda epoch: epoch.validation_loss)
        return -best.validation_accuracy, best.validation_loss

    return min((epochs for epochs in by_seed if epochs), key=rank)


def sparkline(numbers: Sequence[float], width: int = MOST_SPARKS) -> str:
    """The last ``width`` numbers as bars between the lowest and the highest of them."""
    last = numbers[-width:]
    low, high = min(last), max(last)
    span = (high - low) or 1.0
    return "".join(SPARKS[round((len(SPARKS) - 1) * (number - low) / span)] for number in last)


Progress = Callable[[int, int, str], None]


def results_folder(given: Path | None) -> Path:
    """The folder of stored results: the given one, or one in the user's cache folder."""
    if given is not None:
        return given
    from platformdirs import user_cache_path

    return user_cache_path("lpf") / "experiments"


@contextmanager
def watched(what: str) -> Iterator[Progress]:
    """A bar on standard error with the last finished step; nothing if that is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total, last: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[last]}", markup=False, style="dim"),
    )
    with Bars(*columns, console=Output(stderr=True), transient=True) as bars, safe_streams():
        task = bars.add_task(one_line(what), total=None, last="")
        yield lambda done, total, last: bars.update(
            task, completed=done, total=total, last=one_line(last)
        )
