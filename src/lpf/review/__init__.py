"""What reviewers say about answers: recorded, revised, compared, and applied on request.

See docs/review.md.
"""

from lpf.review.agreement import Agreement, AgreementOptions
from lpf.review.applying import ApplyOptions, ApplyOutcome
from lpf.review.blind import BlindCase
from lpf.review.feedback import AnswerFeedback
from lpf.review.queue import QueueOptions, ReviewQueue
from lpf.review.records import Adjudication, Judgement, Review, Withdrawal
from lpf.review.reviews import Revealed, Reviews

__all__ = [
    "Adjudication",
    "Agreement",
    "AgreementOptions",
    "AnswerFeedback",
    "ApplyOptions",
    "ApplyOutcome",
    "BlindCase",
    "Judgement",
    "QueueOptions",
    "Revealed",
    "Review",
    "ReviewQueue",
    "Reviews",
    "Withdrawal",
]
