"""Descriptions of a fitted tree: a summary record, and the text, pictures and pages made from it."""

from prunus.explain.as_dict import export_dict
from prunus.explain.curve_plots import plot_curves
from prunus.explain.explaining import explain_rows
from prunus.explain.family_plot import plot_family
from prunus.explain.formulas import Formula, SplitWeight
from prunus.explain.graphviz import export_graphviz
from prunus.explain.html import export_html
from prunus.explain.plot import plot_tree
from prunus.explain.row_explanation import RowExplanation
from prunus.explain.rules import export_rules
from prunus.explain.summary import tree_summary
from prunus.explain.summary_record import NodeSummary, TreeSummary
from prunus.explain.text import export_text

__all__ = [
    "Formula",
    "NodeSummary",
    "RowExplanation",
    "SplitWeight",
    "TreeSummary",
    "explain_rows",
    "export_dict",
    "export_graphviz",
    "export_html",
    "export_rules",
    "export_text",
    "plot_curves",
    "plot_family",
    "plot_tree",
    "tree_summary",
]
