"""Words of the interactive page about a whole tree: what it is, what its colors mean, and how to read it."""

from typing import Any

import numpy as np

from prunus.describe.numbers import percent
from prunus.describe.record import TreeDescription, TreeSummary
from prunus.describe.rows import Rows

__all__ = ["facts", "help_texts", "legend", "subtitle"]

Record = dict[str, Any]

ROOT = (
    "Every row of the table starts in the root, the first box. Each box of a split asks a question about the row. If "
    "the answer is yes, the row takes the branch that is marked “yes”, otherwise the other one. A box with round "
    "corners is a leaf: the rows that arrive there share {}."
)
QUESTIONS = (
    "Some questions are about one column, such as “age < 40”. Others weigh several columns against each other, such as "
    "“0.8 age - 2 income < 3.1”: multiply each column by its number, add everything up, and compare the sum with the "
    "threshold. A box names the columns that matter most; click it to see all of them."
)
CHARTS = (
    "The histogram in a box shows the rows that arrive there: the values of its column, or of its sum. The triangle "
    "marks the threshold. Rows on the shaded side go on with “yes”."
)
ONE_PATH = "A row follows one path, and its {} is that of the leaf at the end."
ALL_ROUTES = (
    "A row that is close to a threshold is not decided by it: it goes both ways in part, and its {} is {}. For each "
    "box the model has learned what amount of a row may pass, from 0 (nothing) to 1 (the whole row). Boxes where "
    "nothing may pass were pruned: they are not drawn, or are marked by a dash."
)
CURVES = (
    "A leaf holds one number: the prediction for a row of typical values. What the columns of a row add to it, or take "
    "away, is drawn in the tab “Curves”. All leaves share these curves."
)
OWN_ROWS = "The tab “Sample” shows the path of a row: {} of your own."


def subtitle(tree: TreeDescription, rows: Rows | None) -> str:
    """What the tree is, and how far one path agrees with all routes for these rows."""
    leaves = "1 leaf" if tree.n_leaves == 1 else f"{tree.n_leaves} leaves"
    parts = [tree.kind, f"depth {tree.depth}", leaves]
    if tree.agreement is not None and rows is not None:
        parts.append(_agreement(tree.agreement, rows))
    return ", ".join(parts)


def _agreement(agreement: float, rows: Rows) -> str:
    """How far one path tells what all routes predict, beside what one class for all rows would tell."""
    if rows.tree.clusters:
        return f"one path is the largest route for {percent(agreement)} of rows"
    if rows.tree.classes is None:
        return f"R^2 of one path against all routes: {agreement:.3f}"
    predicted = rows.predictions.argmax(1)
    largest = percent(np.bincount(predicted).max() / len(predicted))
    return f"one path agrees with all routes for {percent(agreement)} of rows; the largest class has {largest}"


def legend(tree: TreeDescription, by: str | None) -> str:
    """What colors mean; by what rows are colored, if some were given."""
    if tree.clusters:
        return "Clusters"
    if tree.classes is None:
        return f"{'Mean prediction' if by == 'prediction' else f'Mean of {tree.outputs[0]}'}, from low to high"
    return {"prediction": "Predicted classes", "y": "Classes of the rows"}.get(by or "", "Classes of the training rows")


def help_texts(tree: TreeDescription, record: Record, root: Record) -> list[str]:
    """How to read the tree, for somebody who knows the data but not the method."""
    what = "cluster" if tree.clusters else "prediction"
    found = [ROOT.format("a cluster" if tree.clusters else "a way to be predicted"), QUESTIONS]
    if "chart" in root:
        found.append(CHARTS)
    end = "that of the leaf at the end of its path" if tree.clusters else "put together from all leaves that it reaches"
    found.append(ONE_PATH.format(what) if tree.routing == "hard" else ALL_ROUTES.format(what, end))
    if tree.curves:
        found.append(CURVES)
    return [
        *found,
        OWN_ROWS.format("pick one from the table, or enter values" if record["samples"] else "enter values"),
    ]


def facts(tree: TreeSummary) -> list[list[str]]:
    """Names and values of what the model is."""
    nodes = f"{len(tree.nodes)} kept of {tree.n_nodes}, {tree.n_active} that rows may pass"
    return [
        ["kind", tree.kind],
        ["leaf", tree.leaf],
        ["nodes", str(len(tree.nodes)) if tree.routing == "hard" else nodes],
        ["parameters", f"{tree.n_parameters:,}"],
    ]
