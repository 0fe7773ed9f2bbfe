"""Answers questions (Algorithm 5): the only package that knows the order of the steps."""

from lpf.orchestrator.known_facts import FactPolicy
from lpf.orchestrator.orchestrator import AuditMode, Orchestrator, Parts
from lpf.orchestrator.replay import Replay, replay, replay_deep

__all__ = ["AuditMode", "FactPolicy", "Orchestrator", "Parts", "Replay", "replay", "replay_deep"]
