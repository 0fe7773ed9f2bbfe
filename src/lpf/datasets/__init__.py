"""Labelled data sets: the dataset file, splits and folds, leakage, FEVER."""

from lpf.datasets.dataset import SPLITS, UNLABELLED, Dataset, DatasetEntity, DatasetItem, Split
from lpf.datasets.dataset_file import read_dataset, write_dataset
from lpf.datasets.fever import FEVER_LABELS, PAPER_LABELS, FeverLabels, read_fever
from lpf.datasets.leakage import Leak, find_leakage
from lpf.datasets.splits import assign_splits, grouped_folds, require_trainable

__all__ = [
    "FEVER_LABELS",
    "PAPER_LABELS",
    "SPLITS",
    "UNLABELLED",
    "Dataset",
    "DatasetEntity",
    "DatasetItem",
    "FeverLabels",
    "Leak",
    "Split",
    "assign_splits",
    "find_leakage",
    "grouped_folds",
    "read_dataset",
    "read_fever",
    "require_trainable",
    "write_dataset",
]
