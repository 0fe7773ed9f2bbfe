"""Why an answer is what it is, what would change it, and what to collect next."""

from lpf.explain.explanation import AnswerExplanation, Flip, ItemPart, NotUsed, Part, Weight
from lpf.explain.future import combination_of
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
from lpf.explain.unread import Metadata, UnreadItems
from lpf.explain.what_if import Changes, NewText, supposed

__all__ = [
    "AnswerExplanation",
    "Changes",
    "CollectionPlan",
    "Flip",
    "ItemPart",
    "Metadata",
    "NewText",
    "NextEvidence",
    "NotUsed",
    "Offer",
    "Part",
    "PlannedStep",
    "Recombination",
    "UnreadItems",
    "Weight",
    "combination_of",
    "explain_record",
    "explain_result",
    "next_evidence_of",
    "next_sentences",
    "sentences",
    "supposed",
]
