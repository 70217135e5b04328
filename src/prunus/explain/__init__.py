"""What a learned tree is: one plain record, and pictures made from it."""

from prunus.explain.figures import (
    plot_active_nodes,
    plot_class_routing,
    plot_class_routings,
    plot_error_over_time,
    plot_routing,
)
from prunus.explain.summary import NodeSummary, SplitWeight, TreeSummary, tree_summary

__all__ = [
    "NodeSummary",
    "SplitWeight",
    "TreeSummary",
    "plot_active_nodes",
    "plot_class_routing",
    "plot_class_routings",
    "plot_error_over_time",
    "plot_routing",
    "tree_summary",
]
