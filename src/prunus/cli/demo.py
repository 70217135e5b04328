"""``prunus demo``: a readable tree beside CART's, other classifiers, and clusters of a small table."""

import argparse
import re
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

import prunus
from prunus.cli.command import Outcome, flag, say, table, value
from prunus.cli.errors import require
from prunus.cli.models import check_output
from prunus.metrics import dendrogram_purity

__all__ = ["CLASSIFIERS", "FOLDS", "add_arguments", "read_glass", "run"]

LEAVES = 8
"""Leaves of the trees that are printed."""
FOLDS, REPEATS = 5, 2
GRID = {"max_depth": [3, 4, 6, 8, None], "min_samples_leaf": [1, 3, 5], "ccp_alpha": [0.0, 0.005, 0.01]}
"""Options of scikit-learn's tree that are tried: 45 combinations."""


def _readable() -> Any:
    return prunus.ReadableTreeClassifier(max_leaf_nodes=LEAVES, random_state=0)


def _scikit_learn(max_leaf_nodes: int | None = None) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_leaf_nodes=max_leaf_nodes, random_state=0)


def _best_of_scikit_learn() -> Any:
    from sklearn.model_selection import GridSearchCV

    return GridSearchCV(_scikit_learn(), GRID, cv=5)


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "prunus, readable": _readable,
    "scikit-learn, as small": lambda: _scikit_learn(LEAVES),
    "scikit-learn, best of 45": _best_of_scikit_learn,
    "prunus, the paper's": lambda: prunus.ArgminTreeClassifier(leaf="linear", random_state=0),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``demo``."""
    value(parser, "--html", "FILE", "the web page to write (default: tree.html)", default="tree.html")
    flag(parser, "--force", "replace FILE if it exists")


def run(options: argparse.Namespace) -> Outcome:
    """Train all methods and compare them."""
    page = check_output(options.html, force=options.force)
    X, y = read_glass()  # noqa: N806
    classifiers = []
    for name, make in CLASSIFIERS.items():
        say(options, f"{name}: {FOLDS * REPEATS} fits")
        classifiers.append(_cross_validated(name, make, X, y))
    say(options, "clusters")
    clusters = _clusters(X, y)
    readable, cart = _readable().fit(X, y), _scikit_learn(LEAVES).fit(X, y)
    prunus.export_html(readable, str(page), X, y)
    trees = {"prunus": prunus.export_text(readable), "scikit-learn": _text_of_cart(cart, X)}
    record = {
        "trees": trees,
        "classifiers": classifiers,
        "clusters": clusters,
        "html": str(page),
    }
    return Outcome(record, _text(X, y, trees, classifiers, clusters, page))


def read_glass() -> tuple[Any, Any]:
    """The table in this package: the features, and the types of glass.

    >>> X, y = read_glass()
    >>> X.shape, y[0]
    ((214, 9), 'building windows float')
    """
    with (files("prunus.cli") / "glass.csv").open(encoding="utf-8") as file:
        frame = require("pandas", "tables").read_csv(file)
    return frame.drop(columns="Type"), frame["Type"].to_numpy(dtype=object)


def _cross_validated(name: str, make: Callable[[], Any], X: Any, y: Any) -> dict[str, Any]:  # noqa: N803
    from sklearn.model_selection import RepeatedStratifiedKFold

    accuracy, leaves, seconds = [], [], []
    folds = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=REPEATS, random_state=0)
    for train, test in folds.split(X, y):
        start = time.perf_counter()
        tree = make().fit(X.iloc[train], y[train])
        seconds.append(time.perf_counter() - start)
        accuracy.append(tree.score(X.iloc[test], y[test]))
        leaves.append(getattr(tree, "best_estimator_", tree).get_n_leaves())
    return {
        "tree": name,
        "accuracy": float(np.mean(accuracy)),
        "deviation": float(np.std(accuracy)),
        "leaves": float(np.mean(leaves)),
        "seconds": float(np.mean(seconds)),
    }


def _clusters(X: Any, y: Any) -> list[dict[str, Any]]:  # noqa: N803
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.preprocessing import StandardScaler

    tree = prunus.ArgminTreeClusterer(random_state=0).fit(X)
    names = ("hierarchy", "purity", "leaves", "places_new_rows")
    found = [("prunus", dendrogram_purity(tree.apply(X), y), tree.n_leaves_, "yes")]
    scaled = StandardScaler().fit_transform(X)
    for linkage in ("ward", "average", "complete"):
        merges = AgglomerativeClustering(linkage=linkage, compute_full_tree=True).fit(scaled).children_
        found.append((f"scikit-learn, {linkage} linkage", dendrogram_purity(merges, y), len(X), "no"))
    return [dict(zip(names, row, strict=True)) for row in found]


def _text_of_cart(tree: Any, X: Any) -> str:  # noqa: N803
    from sklearn.tree import export_text

    text: str = export_text(tree, feature_names=list(X.columns))
    return text


def _without_probabilities(text: str) -> str:
    """The text of a tree without the probabilities of six classes in each leaf, to be as narrow as a terminal."""
    return re.sub(r", probabilities: .*(?= \()", "", text).rstrip()


def _text(
    X: Any,  # noqa: N803
    y: Any,
    trees: dict[str, str],
    classifiers: list[dict[str, Any]],
    clusters: list[dict[str, Any]],
    page: Path,
) -> str:
    header = ["tree", "accuracy", "leaves", "seconds a fit"]
    rows = [
        [
            row["tree"],
            "{accuracy:.3f} +- {deviation:.3f}".format(**row),
            f"{row['leaves']:.0f}",
            f"{row['seconds']:.2f}",
        ]
        for row in classifiers
    ]
    hierarchies = [
        [row["hierarchy"], f"{row['purity']:.3f}", str(row["leaves"]), row["places_new_rows"]] for row in clusters
    ]
    readable = _without_probabilities(trees["prunus"])
    columns = ["hierarchy", "purity", "leaves", "places new rows"]
    return "\n\n".join(
        [
            f"Glass: {len(X)} samples of {len(set(y))} types, by {X.shape[1]} measurements (B. German, UCI, CC BY 4.0)",
            f"A tree of prunus with at most {LEAVES} leaves, learned from all rows\n{readable}",
            f"A tree of scikit-learn with {LEAVES} leaves\n{trees['scikit-learn'].rstrip()}",
            f"Accuracy on held-out rows, {FOLDS} folds, {REPEATS} times\n{table(header, rows)}",
            f"Clusters, learned without the types and compared with them\n{table(columns, hierarchies)}",
            f"The tree of prunus is in {page}: open it in a browser.",
        ]
    )
