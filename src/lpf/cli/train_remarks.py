"""What is said of a training run beside its numbers: what had no effect, and how to go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lpf.errors import LPFError

if TYPE_CHECKING:
    from lpf.workspace import Workspace
    from lpf.workspace.training_runs import TrainingOutcome, TrainingRun


def ignored_options(
    run: TrainingRun, patience: int | None, seeds: Sequence[int] | None, unfreeze: bool
) -> list[str]:
    """Options that were given and have no effect on so few entities."""
    if not run.few:
        return []
    given, members = len(seeds or ()), run.config.members
    told = {
        "--patience": patience is not None,
        f"{given - members} of {given} --seeds (members: {members})": given > members,
        "--unfreeze": unfreeze,
    }
    return [option for option, is_so in told.items() if is_so]


def has_no_evidence(space: Workspace) -> bool:
    """Whether there is nothing to ask about. A store out of reach is nothing to training: whoever
    asks is told."""
    try:
        return space.evidence.count() == 0
    except LPFError:
        return False


def next_step(outcome: TrainingOutcome, store_is_empty: bool) -> str:
    """The command that makes use of the model."""
    if not outcome.active:
        return f"lpf models use {outcome.version}"
    ask = f"lpf query ENTITY {outcome.run.predicates[0]}"
    return f"lpf ingest EVIDENCE, then {ask}" if store_is_empty else ask
