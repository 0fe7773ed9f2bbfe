"""What is wrong with a workspace, and how to mend it. Looks at everything, changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from lpf.errors import LPFError
from lpf.workspace.examinations import WITHOUT_STORE, Check
from lpf.workspace.settings import read_settings
from lpf.workspace.store_examinations import WITH_STORE, examine_store
from lpf.workspace.workspace import Workspace, find_folder

__all__ = ["Check", "examine"]


def examine(folder: Path | str | None = None, *, full: bool = False) -> list[Check]:
    """Everything about the workspace in ``folder`` (or the nearest one). Never raises: whatever is
    broken becomes a fault. ``full`` verifies the whole ledger and every page of the store."""
    try:
        settings = read_settings(find_folder(folder))
    except Exception as error:
        return [_fault("settings", error)]
    checks = [Check("settings", "ok", f"{settings.folder} is a workspace")]
    sound = _run("store", partial(examine_store, settings, full))
    checks += sound
    with Workspace(settings) as workspace:
        examinations = WITHOUT_STORE if _unusable(sound) else {**WITH_STORE, **WITHOUT_STORE}
        for name, examination in examinations.items():
            checks += _run(name, partial(examination, workspace, full))
    return checks


def _unusable(store: list[Check]) -> bool:
    """A store that is broken, or that looking further would bring to a newer version."""
    return any(check.state == "fault" or check.name == "store version" for check in store)


def _run(name: str, work: Callable[[], Iterator[Check]]) -> list[Check]:
    """What was found, up to and with the fault that ended the search."""
    found: list[Check] = []
    try:
        found.extend(work())
    except Exception as error:
        found.append(_fault(name, error))
    return found


def _fault(name: str, error: Exception) -> Check:
    """Our own messages say how to mend it; those of others are shown with their kind."""
    if isinstance(error, LPFError):
        return Check(name, "fault", str(error))
    return Check(name, "fault", f"{type(error).__name__}: {error}", "report this as a fault of lpf")
