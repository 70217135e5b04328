"""Other methods for small trees, as the benchmark fits them; each is imported when it is fitted.

Where a method has a bound on leaves or rules it is given that, else the depth of the full tree with as many leaves. All
other options are the defaults of its library.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.small_methods import Learned, Problem, find

__all__ = [
    "fit_contree",
    "fit_cubist",
    "fit_dpdt",
    "fit_figs",
    "fit_obliquetree",
    "fit_sgtlearn",
    "fit_streed",
]

THRESHOLDS = 40
"""For STreeD, of all columns together: those which small boosted trees choose."""


def fit_streed(problem: Problem) -> Learned:
    """The optimal tree of a depth, over a choice of thresholds."""
    kind = find("benchmarks.harness.methods.streed").Optree
    return _of_harness(
        kind, problem, depth=problem.depth, max_questions=THRESHOLDS, time_limit=problem.limit_s, leaves=None
    )


def fit_obliquetree(problem: Problem) -> Learned:
    """A greedy tree of a depth, of which each split may combine two columns."""
    kind = find("benchmarks.harness.methods.oblique_tree").ObliqueTree
    return _of_harness(kind, problem, max_depth=problem.depth, n_pair=2, leaves="n_leaves")


def fit_contree(problem: Problem) -> Learned:
    """The optimal tree of a depth over all thresholds, or the best that was found in time."""
    pandas = find("pandas")
    tree = find("pycontree").ConTree(max_depth=problem.depth, time_limit=problem.limit_s)
    names = [f"x{j}" for j in range(problem.x.shape[1])]
    classes, numbers = np.unique(problem.y, return_inverse=True)
    tree.fit(pandas.DataFrame(problem.x, columns=names), pandas.Series(numbers))
    return Learned(lambda x: classes[tree.predict(pandas.DataFrame(x, columns=names))], None)


def fit_figs(problem: Problem) -> Learned:
    """A sum of trees with one split less than a tree of this many leaves, all of them together."""
    imodels = find("imodels")
    kind = imodels.FIGSClassifier if problem.has_classes else imodels.FIGSRegressor
    return _fitted(kind(max_rules=problem.leaves - 1, random_state=problem.seed), problem)


def fit_dpdt(problem: Problem) -> Learned:
    """A tree of a depth, found by dynamic programming over splits that CART proposes."""
    dpdt = find("dpdt")
    kind = _for_new_sklearn(dpdt.DPDTreeClassifier if problem.has_classes else dpdt.DPDTreeRegressor)
    return _fitted(kind(max_depth=problem.depth, random_state=problem.seed), problem)


def fit_sgtlearn(problem: Problem) -> Learned:
    """A tree of which each split is a small tree of its own, over one or two columns."""
    sgtlearn = find("sgtlearn")
    kind = sgtlearn.SGTClassifier if problem.has_classes else sgtlearn.SGTRegressor
    tree = kind(max_leaf_nodes=problem.leaves, pairwise_candidates=1.0, random_state=problem.seed)
    return _fitted(tree, problem)


def fit_cubist(problem: Problem) -> Learned:
    """Rules that lead to linear models: one committee, no neighbours."""
    rules = find("cubist").Cubist(n_rules=problem.leaves, n_committees=1, random_state=problem.seed)
    return _fitted(rules, problem, lambda model: len(model.coeffs_))


def _for_new_sklearn(kind: Any) -> Any:
    """A class that calls two methods which scikit-learn's estimators had until version 1.6, with these methods."""

    class Adapted(kind):  # type: ignore[misc]
        def _validate_data(self, *given: Any, **options: Any) -> Any:
            return validation.validate_data(self, *given, **options)

        def _check_n_features(self, x: Any, *, reset: bool) -> None:
            validation._check_n_features(self, x, reset=reset)

    validation = find("sklearn.utils.validation")
    return Adapted


def _fitted(model: Any, problem: Problem, count: Callable[[Any], int] | None = None) -> Learned:
    """A model with scikit-learn's methods, of classes that are numbered without gaps."""
    if not problem.has_classes:
        model.fit(problem.x, problem.y)
        return Learned(lambda x: np.asarray(model.predict(x)).ravel(), None if count is None else count(model))
    classes, numbers = np.unique(problem.y, return_inverse=True)
    model.fit(problem.x, numbers)

    def predict(x: Any) -> npt.NDArray[Any]:
        return classes[np.asarray(model.predict(x)).ravel().astype(np.int64)]

    return Learned(predict, None if count is None else count(model))


def _of_harness(kind: Any, problem: Problem, *, leaves: str | None, **options: Any) -> Learned:
    """A method that the harness has for other benchmarks."""
    task = "classes" if problem.has_classes else "values"
    model = kind(task, random_state=problem.seed, **options).fit(problem.x, problem.y)
    return Learned(model.predict, None if leaves is None else int(getattr(model, leaves)))
