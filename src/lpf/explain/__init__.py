"""Why an answer is what it is, and what would change it."""

from lpf.explain.explanation import AnswerExplanation, Flip, ItemPart, NotUsed, Part, Weight
from lpf.explain.of_answers import explain_record, explain_result
from lpf.explain.sentences import sentences
from lpf.explain.what_if import Changes, NewText, supposed

__all__ = [
    "AnswerExplanation",
    "Changes",
    "Flip",
    "ItemPart",
    "NewText",
    "NotUsed",
    "Part",
    "Weight",
    "explain_record",
    "explain_result",
    "sentences",
    "supposed",
]
