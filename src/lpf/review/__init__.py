"""What reviewers say about answers: recorded, revised, compared, and applied on request.

See docs/review.md.
"""

from lpf.review.blind import BlindCase
from lpf.review.feedback import AnswerFeedback
from lpf.review.records import Adjudication, Judgement, Review, Withdrawal
from lpf.review.reviews import Revealed, Reviews

__all__ = [
    "Adjudication",
    "AnswerFeedback",
    "BlindCase",
    "Judgement",
    "Revealed",
    "Review",
    "Reviews",
    "Withdrawal",
]
