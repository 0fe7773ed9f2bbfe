"""What is shown while cells are run, and where they are kept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Progress = Callable[[int, int, str], None]


def keeping_folder(given: Path | None) -> Path:
    """The one named, or the user's cache."""
    if given is not None:
        return given
    from platformdirs import user_cache_path

    return user_cache_path("lpf") / "experiments"


@contextmanager
def watched(what: str) -> Iterator[Progress]:
    """A bar on standard error with what was done last; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total, last: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("[dim]{task.fields[last]}", markup=True),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None, last="")
        yield lambda done, total, last: bars.update(task, completed=done, total=total, last=last)
