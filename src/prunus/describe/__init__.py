"""What a fitted tree is in the units of its table: one description, which every text, picture and page reads."""

from prunus.describe.explain import explain_rows
from prunus.describe.explanation import RowExplanation
from prunus.describe.read import tree_summary
from prunus.describe.record import Formula, NodeSummary, SplitWeight, TreeSummary

__all__ = [
    "Formula",
    "NodeSummary",
    "RowExplanation",
    "SplitWeight",
    "TreeSummary",
    "explain_rows",
    "tree_summary",
]
