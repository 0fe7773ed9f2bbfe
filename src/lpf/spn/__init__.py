"""Circuits over discrete variables: build or learn one, compile it, ask it.

Knows nothing of evidence texts. See docs/circuits.md.
"""

from lpf.spn.builder import CircuitBuilder, prior_circuit
from lpf.spn.chowliu import learn_chow_liu
from lpf.spn.circuit import Circuit
from lpf.spn.config import ChowLiuConfig, LearnSPNConfig, RefineConfig
from lpf.spn.evaluator import CompiledCircuit, compile_circuit
from lpf.spn.information import entropy, mutual_information
from lpf.spn.learnspn import learn_spn
from lpf.spn.mpe import MostProbable, most_probable_explanation
from lpf.spn.nodes import Leaf, Product, Sum
from lpf.spn.queries import conditional_probability, joint_probability, joint_table
from lpf.spn.refine import Refined, refine
from lpf.spn.sampling import sample
from lpf.spn.serialise import dump_circuit, load_circuit
from lpf.spn.table import Table
from lpf.spn.variables import Variable

__all__ = [
    "ChowLiuConfig",
    "Circuit",
    "CircuitBuilder",
    "CompiledCircuit",
    "Leaf",
    "LearnSPNConfig",
    "MostProbable",
    "Product",
    "RefineConfig",
    "Refined",
    "Sum",
    "Table",
    "Variable",
    "compile_circuit",
    "conditional_probability",
    "dump_circuit",
    "entropy",
    "joint_probability",
    "joint_table",
    "learn_chow_liu",
    "learn_spn",
    "load_circuit",
    "most_probable_explanation",
    "mutual_information",
    "prior_circuit",
    "refine",
    "sample",
]
