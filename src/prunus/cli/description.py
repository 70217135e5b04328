"""What a fitted tree or forest is: for people in lines, for programs as a record."""

from typing import Any

import prunus
from prunus.cli.models import is_clusterer, is_forest, is_readable
from prunus.cli.scores import Scores

__all__ = ["leaves_text", "model_lines", "model_record", "model_warning", "note_lines"]


def model_record(estimator: Any) -> dict[str, Any]:
    """The size of a fitted tree, for programs; of a forest, sums over its trees and the largest depth."""
    if is_forest(estimator):
        trees = [model_record(tree) for tree in estimator.estimators_]
        sums = {name: sum(tree[name] for tree in trees) for name in ("leaves", "parameters", "epochs")}
        depth = max(tree["depth"] for tree in trees)
        common = {"kind": type(estimator).__name__, "trees": len(trees), "depth": depth}
        return {name: trees[0][name] for name in ("routing", "leaf")} | common | sums
    summary = prunus.tree_summary(estimator)
    common = {
        "kind": summary.kind,
        "routing": summary.routing,
        "leaf": summary.leaf,
        "depth": summary.depth,
        "leaves": estimator.n_leaves_ if is_clusterer(estimator) else summary.n_leaves,  # of clusters: those with rows
        "parameters": summary.n_parameters,
    }
    if is_readable(estimator):
        return common | {"columns": len(estimator.columns_), "used_columns": _used_columns(estimator)}
    return common | {
        "epochs": estimator.n_iter_,
        "best_epoch": estimator.best_iteration_ + 1,
    }


def _used_columns(tree: Any) -> int:
    """The number of columns of the table that the splits of a readable tree compare."""
    return len({term.feature for split in tree.record_.splits.values() for term in split.terms})


def leaves_text(n: int) -> str:
    """A number of leaves, in words.

    >>> leaves_text(1), leaves_text(12)
    ('1 leaf', '12 leaves')
    """
    return "1 leaf" if n == 1 else f"{n} leaves"


def model_lines(model: dict[str, Any], seconds: float) -> list[tuple[str, Any]]:
    """The size of a fitted tree, for people."""
    if "used_columns" in model:
        columns = f"{model['used_columns']} of {model['columns']} columns in splits"
        size = f"{leaves_text(model['leaves'])}, depth {model['depth']}, {columns}"
        return [("tree", size), ("search", f"{seconds:.1f} s")]
    size = f"depth {model['depth']}, {leaves_text(model['leaves'])} ({model['leaf']}), {model['parameters']} parameters"
    if model["routing"] == "hard":
        size += "; rows follow one path"
    if "trees" in model:
        return [
            ("forest", f"{model['trees']} trees of {size}"),
            ("training", f"{model['epochs']} epochs in {seconds:.1f} s"),
        ]
    return [("tree", size), ("training", f"{model['epochs']} epochs in {seconds:.1f} s")]


def note_lines(warning: str | None) -> list[tuple[str, Any]]:
    """A line about a tree, if there is one, with options as on the command line."""
    return [] if warning is None else [("note", warning.replace('routing="hard"', "--kind hard"))]


def model_warning(estimator: Any, validation: Scores | None) -> str | None:
    """A line about a tree without splits, or about paths that predict something else: on held-out rows, if any."""
    from prunus.targets import remarks  # needs torch

    if is_forest(estimator):
        return None
    if is_readable(estimator):
        return prunus.tree_summary(estimator).warning
    tree = estimator.tree_
    known = tree.agreement if validation is None else validation.get("hard_soft_agreement")
    return remarks(estimator.target_.task, known, all_pruned=tree.all_pruned)
