"""Why an answer is what it is, and what would change it."""

from lpf.explain.explanation import AnswerExplanation, Flip, ItemPart, Part, Weight
from lpf.explain.of_answers import explain_record, explain_result

__all__ = [
    "AnswerExplanation",
    "Flip",
    "ItemPart",
    "Part",
    "Weight",
    "explain_record",
    "explain_result",
]
