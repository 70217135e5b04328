"""What to tell of a tree without splits, and of a soft tree whose hard predictions differ from its own."""

from prunus.targets.target import Task

__all__ = ["disagreement", "remarks"]

LEAST: dict[Task, float] = {"classes": 0.95, "numbers": 0.98}
"""With a smaller agreement, see `prunus.targets.Target.agreement`, the paths of a soft tree do not explain it."""
NO_SPLITS = "No split was worth keeping: all rows end in one leaf."


def disagreement(task: Task, agreement: float | None) -> str | None:
    """One line that warns of a soft tree whose paths predict something else than the tree itself.

    It is None if the paths agree with the tree, or if the agreement is not known. The rows of clusters always follow
    one path, so there is nothing to tell of them.

    Examples
    --------
    >>> print(disagreement("classes", 0.9))
    This tree predicts along all routes; its paths alone would give 10% of the rows another class. With routing="hard" \
the paths are the predictions.
    >>> print(disagreement("classes", 0.99))
    None
    """
    if agreement is None or task not in LEAST or agreement >= LEAST[task]:
        return None
    if task == "classes":
        found = f"would give {1 - agreement:.0%} of the rows another class"
    elif agreement < 0.005:
        found = "explain none of its predictions"
    else:
        found = f"explain only {agreement:.0%} of the variance of its predictions"
    return (
        f"This tree predicts along all routes; its paths alone {found}. "
        'With routing="hard" the paths are the predictions.'
    )


def remarks(task: Task, agreement: float | None, *, all_pruned: bool) -> str | None:
    """One line about a tree: that no split is kept, and that its paths predict something else, see `disagreement`.

    Examples
    --------
    >>> print(remarks("classes", 1.0, all_pruned=True))
    No split was worth keeping: all rows end in one leaf.
    >>> print(remarks("classes", 1.0, all_pruned=False))
    None
    """
    told = [NO_SPLITS] if all_pruned else []
    differs = disagreement(task, agreement)
    return " ".join([*told, *([differs] if differs else [])]) or None
