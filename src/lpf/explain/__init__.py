"""Why an answer is what it is, what would change it, and what to collect next."""

from lpf.explain.explanation import AnswerExplanation, Flip, ItemPart, Part, Weight
from lpf.explain.future import combination_of
from lpf.explain.information import Outlook, entropy_bits, outlook_of_items, outlook_of_pool
from lpf.explain.kinds import Kinds
from lpf.explain.next_evidence import (
    CollectionPlan,
    NextEvidence,
    Offer,
    PlannedStep,
    next_evidence_of,
)
from lpf.explain.next_sentences import next_sentences
from lpf.explain.of_answers import explain_record, explain_result
from lpf.explain.recombination import Recombination
from lpf.explain.sentences import sentences
from lpf.explain.what_if import Changes, NewText, supposed

__all__ = [
    "AnswerExplanation",
    "Changes",
    "CollectionPlan",
    "Flip",
    "ItemPart",
    "Kinds",
    "NewText",
    "NextEvidence",
    "Offer",
    "Outlook",
    "Part",
    "PlannedStep",
    "Recombination",
    "Weight",
    "combination_of",
    "entropy_bits",
    "explain_record",
    "explain_result",
    "next_evidence_of",
    "next_sentences",
    "outlook_of_items",
    "outlook_of_pool",
    "sentences",
    "supposed",
]
