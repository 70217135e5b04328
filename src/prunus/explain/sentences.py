"""What a split does with a row, in one sentence."""

from functools import partial

from prunus.explain.digits import short_number
from prunus.explain.phrases import split_parts, sum_parts
from prunus.explain.summary_record import NodeSummary

__all__ = ["split_sentence"]

write = partial(short_number, digits=4)


def split_sentence(node: NodeSummary, score: float, value: str | None, max_features: int = 3) -> str:
    """What a split does with a row.

    Parameters
    ----------
    node : NodeSummary
        The node with the split.
    score : float
        The score of the row: it goes left if it is negative.
    value : str or None
        The value of the row, in words, if the split uses only one column of the table.
    max_features : int, default=3
        Number of features that are written, the strongest first.

    Examples
    --------
    >>> from prunus.explain import SplitWeight
    >>> parts = (SplitWeight("rooms", 2.1, 1.0), SplitWeight("age", -0.4, 0.5))
    >>> split_sentence(NodeSummary(0, 0, 1.0, None, False, parts, 1.7), 1.5, None)
    '2.1 rooms - 0.4 age = 3.2, above 1.7: right'
    """
    side = "left" if score < 0 else "right"
    if node.threshold is None:
        return f"split {node.node} scores {write(score)}, {_place(score)} 0: {side}"
    if node.column is not None and value is not None:
        name = node.column.name if value == "missing" else node.column.title
        return f"{name} {_is(value)}{_single(node, score, value)}: {side}"
    if len(node.split) == 1:  # it is an effect, since splits of other columns have been told
        (part,) = node.split
        found, limit = (node.threshold + score) / part.weight, node.threshold / part.weight
        return f"{part.label} = {write(found)}, {_place(score * part.weight)} {write(limit)}: {side}"
    terms = sum_parts(node.split, max_features, write) or ["0"]
    return f"{' '.join(terms)} = {write(node.threshold + score)}, {_place(score)} {write(node.threshold)}: {side}"


def _place(score: float) -> str:
    return "below" if score < 0 else "above"


def _is(value: str) -> str:
    return "is missing" if value == "missing" else f"= {value}"


def _single(node: NodeSummary, score: float, value: str) -> str:
    """How a number lies to the thresholds of a split; nothing for levels and missing values."""
    assert node.column is not None
    if not node.column.thresholds or value == "missing":
        return ""
    _, *condition = split_parts(node, 1, write)[0 if score < 0 else 1]
    signs = {"<": "below", "<=": "below", ">": "above", ">=": "above"}
    words = " ".join(condition).split()
    return ", " + " ".join(signs.get(word, word) for word in words)
