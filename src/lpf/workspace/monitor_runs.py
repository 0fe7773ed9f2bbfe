"""Monitoring of a workspace's active model."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lpf.errors import ConfigError
from lpf.ingest import FileOptions
from lpf.monitor import StoredTrust, write_trust
from lpf.monitor.monitoring import MonitoredParts, Monitoring, MonitorPlan, monitored
from lpf.monitor.outcomes import outcomes_from_facts, outcomes_from_file
from lpf.monitor.windows import WindowSize
from lpf.storage.values import now_micros, to_micros

if TYPE_CHECKING:
    from lpf.workspace.workspace import Workspace


def run_monitor(
    workspace: Workspace,
    outcomes: Path | str | None,
    *,
    predicate: str | None,
    since: datetime | None,
    window: str | None,
    options: FileOptions | None,
    save: bool,
) -> Monitoring:
    """See ``Workspace.monitor``."""
    model = workspace.model
    if model is None:
        raise ConfigError(
            "there is no model to monitor: only known facts answer. Nothing was computed.",
            hint="Train one: lpf train, or add one: lpf models add FOLDER.",
        )
    names = [one.name for one in model.config.predicates if one.name in workspace.schema]
    if not names:
        raise ConfigError(
            f"the model {model.version} answers no predicate of the schema. Nothing was computed.",
            hint="Train one for this schema: lpf train.",
        )
    if predicate is not None:
        wanted = workspace.predicate(predicate)
        if wanted not in names:
            raise ConfigError(
                f"the model {model.version} was not trained for {wanted!r}. Nothing was computed.",
                field="predicate",
                hint=f"It answers {', '.join(names)}.",
            )
        names = [wanted]
    size = None if window is None else WindowSize.parse(window)
    start = None if since is None else to_micros(since)
    plan = MonitorPlan(tuple(names), now_micros(), start, size)
    read_as: tuple[str, ...] = ()
    confident = workspace.settings.facts.min_confidence
    if outcomes is None:
        known = outcomes_from_facts(workspace.facts, names, confident)
    else:
        if options is None and predicate is not None:
            options = FileOptions(predicate=predicate)
        known, read_as = outcomes_from_file(outcomes, workspace.schema, confident, options, plan.at)
    parts = MonitoredParts(workspace.records, workspace.contents, workspace.evidence, model)
    found = monitored(parts, known, plan)
    stores = save and predicate is None and since is None
    if stores:
        by_predicate = {one.predicate: one.trust for one in found.predicates if one.entities}
        write_trust(workspace.folder, StoredTrust(model.version, by_predicate))
    return replace(found, read_as=read_as, is_stored=stores)
