"""Synthetic domains: declarations and a generator of data sets with exact answers."""

from lpf.domains.declaration import Aspect, Domain, Related
from lpf.domains.generator import evidence_model, generate, generate_test, known_facts, write_facts
from lpf.domains.loading import domain_names, load_domain, parse_domain
from lpf.domains.parameters import PRESETS, GeneratorParameters, preset, with_settings
from lpf.domains.perfect_reader import perfect_answers, posteriors
from lpf.domains.records import stream

__all__ = [
    "PRESETS",
    "Aspect",
    "Domain",
    "GeneratorParameters",
    "Related",
    "domain_names",
    "evidence_model",
    "generate",
    "generate_test",
    "known_facts",
    "load_domain",
    "parse_domain",
    "perfect_answers",
    "posteriors",
    "preset",
    "stream",
    "with_settings",
    "write_facts",
]
