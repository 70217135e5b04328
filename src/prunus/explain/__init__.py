"""Descriptions of a fitted tree: a summary record, and the text, pictures and pages made from it."""

from prunus.explain.as_dict import export_dict
from prunus.explain.graphviz import export_graphviz
from prunus.explain.html import export_html
from prunus.explain.plot import plot_tree
from prunus.explain.rules import export_rules
from prunus.explain.summary import NodeSummary, SplitWeight, TreeSummary, tree_summary
from prunus.explain.text import export_text

__all__ = [
    "NodeSummary",
    "SplitWeight",
    "TreeSummary",
    "export_dict",
    "export_graphviz",
    "export_html",
    "export_rules",
    "export_text",
    "plot_tree",
    "tree_summary",
]
