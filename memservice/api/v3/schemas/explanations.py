"""How a search found its results."""

from __future__ import annotations

from memservice.api.fields import Float, Integer, Nested
from memservice.api.schema import BaseSchema
from memservice.api.v3.schemas import conclusions, messages


class TextScore(BaseSchema):
    """A result in the list by text."""

    rank = Integer(required=True, metadata={"minimum": 1})
    share = Float(
        required=True, metadata={"description": "What the list adds to the score: 1 / (k + rank)"}
    )
    score = Float(
        allow_none=True,
        metadata={
            "description": (
                "BM25 with the share of neighbouring messages. Null for a key that does not open "
                "the whole workspace"
            )
        },
    )
    own_score = Float(
        allow_none=True,
        metadata={
            "description": (
                "BM25 of its own words. Null as `score`, and without a word of the query"
            )
        },
    )


class VectorScore(BaseSchema):
    """A result in the list by vectors, or outside of it with a known similarity to the query."""

    rank = Integer(
        allow_none=True,
        metadata={"minimum": 1, "description": "In the list by vectors; null outside of it"},
    )
    share = Float(
        required=True, metadata={"description": "What the list adds to the score; 0 outside of it"}
    )
    similarity = Float(
        required=True,
        allow_none=True,
        metadata={
            "description": (
                "Cosine similarity; null for the reply to a question that is in the list"
            )
        },
    )


class SourceScore(BaseSchema):
    """A message that a derived conclusion rests on, which has words of the query or is similar."""

    rank = Integer(required=True, metadata={"minimum": 1})
    share = Float(
        required=True,
        metadata={
            "description": (
                "What the list adds to the score: covered / (k + rank), or 1 / (k + rank) if "
                "covered is null"
            )
        },
    )
    covered = Float(
        required=True,
        allow_none=True,
        metadata={
            "description": (
                "The share of the query's words that the conclusion has; null if it counts for "
                "its similarity"
            )
        },
    )
    similarity = Float(
        required=True,
        allow_none=True,
        metadata={
            "description": (
                "Cosine similarity of the conclusion to the query; null if it counts for its words"
            )
        },
    )


class ScoreBoosts(BaseSchema):
    """What is added, before the ranks, to scores relative to the best one."""

    name = Float(required=True, metadata={"description": "The query names the author"})
    date = Float(
        required=True,
        metadata={"description": "The query names the day, or one that the message mentions"},
    )
    asker = Float(
        required=True,
        metadata={"description": "The query is about its asker, who may be the author"},
    )


class Explanation(BaseSchema):
    """The parts of a score."""

    score = Float(required=True, metadata={"description": "The sum of the shares"})
    text = Nested(TextScore, allow_none=True)
    vector = Nested(VectorScore, allow_none=True)
    boosts = Nested(ScoreBoosts, required=True)


class MessageExplanation(Explanation):
    """The parts of the score of a message."""

    source = Nested(SourceScore, allow_none=True)


class ExplainedMessage(messages.Message):
    """`explanation` is included on request."""

    explanation = Nested(MessageExplanation)


class ExplainedConclusion(conclusions.ListedConclusion):
    """`explanation` is included on request."""

    explanation = Nested(Explanation)
