"""A folder with ``lpf.toml``: opens it and wires the parts."""

from lpf.workspace.settings import Settings
from lpf.workspace.training_runs import require_torch
from lpf.workspace.workspace import Workspace

__all__ = ["Settings", "Workspace", "require_torch"]
