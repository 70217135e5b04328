"""Texts, pictures, pages and code made from the description of a tree, one renderer a file."""

from prunus.render.as_dict import export_dict
from prunus.render.curve_plots import plot_curves
from prunus.render.family_plot import plot_family
from prunus.render.graphviz import export_graphviz
from prunus.render.html import export_html
from prunus.render.plot import plot_tree
from prunus.render.python import export_python
from prunus.render.rules import export_rules
from prunus.render.sql import export_sql
from prunus.render.text import export_text

__all__ = [
    "export_dict",
    "export_graphviz",
    "export_html",
    "export_python",
    "export_rules",
    "export_sql",
    "export_text",
    "plot_curves",
    "plot_family",
    "plot_tree",
]
