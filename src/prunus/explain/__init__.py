"""What a learned tree is: one plain record."""

from prunus.explain.summary import NodeSummary, SplitWeight, TreeSummary, tree_summary

__all__ = ["NodeSummary", "SplitWeight", "TreeSummary", "tree_summary"]
