"""Workspaces: folders with ``lpf.toml`` that store evidence and answer questions about it."""

from lpf.workspace.settings import Settings
from lpf.workspace.training_runs import require_torch
from lpf.workspace.workspace import Workspace

__all__ = ["Settings", "Workspace", "require_torch"]
