"""Sum-product networks ("circuits") over discrete variables: build, learn, query, save.

A stand-alone library; see docs/circuits.md.
"""

from lpf.circuits.chow_liu import ChowLiuConfig, learn_chow_liu
from lpf.circuits.circuit import (
    Circuit,
    CircuitBuilder,
    Leaf,
    Product,
    Sum,
    Variable,
    prior_circuit,
)
from lpf.circuits.data_table import DataTable
from lpf.circuits.em import RefineConfig, Refined, refine
from lpf.circuits.evaluator import CompiledCircuit, compile_circuit
from lpf.circuits.learn_spn import LearnSPNConfig, learn_spn
from lpf.circuits.most_probable import MostProbable, most_probable_explanation
from lpf.circuits.queries import (
    conditional_probability,
    entropy,
    joint_probability,
    joint_table,
    mutual_information,
)
from lpf.circuits.sampling import sample
from lpf.circuits.serialise import dump_circuit, load_circuit

__all__ = [
    "ChowLiuConfig",
    "Circuit",
    "CircuitBuilder",
    "CompiledCircuit",
    "DataTable",
    "Leaf",
    "LearnSPNConfig",
    "MostProbable",
    "Product",
    "RefineConfig",
    "Refined",
    "Sum",
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
