"""A greedy search in place of the real one."""

from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from prunus.search.columns import as_matrix
from prunus.search.problem import FamilyMember, Found, Limits, Problem
from prunus.search.record import Leaf, LeafFormula, ReadableRecord, Split, Term
from tests.estimators.readable_problems import with_rows


def find_tree(problem: Problem, limits: Limits, *, n_jobs: int, seed: int, report: Any) -> Found:
    x = as_matrix(problem.columns)
    for j, c in enumerate(problem.columns):
        if hasattr(c, "codes"):
            x[:, j] = np.where(np.isnan(x[:, j]), -1, x[:, j])
    missing = np.where(np.isfinite(np.nanmean(x, 0)), 0, 0)
    full = np.where(np.isnan(x), missing, x)
    most = 8 if limits.max_leaf_nodes == "auto" else limits.max_leaf_nodes
    family = []
    for n in range(1, max(most, 2) + 1):
        kind = DecisionTreeClassifier if problem.n_classes else DecisionTreeRegressor
        tree = kind(max_leaf_nodes=max(n, 2), random_state=seed % 1000, max_depth=None if n > 1 else 1)
        tree.fit(full, problem.y, problem.weight)
        t, splits, leaves = tree.tree_, {}, {}

        def visit(i, node):
            value = t.value[i]
            if t.children_left[i] < 0 or n == 1:
                outs = value[:, 0] if not problem.n_classes else np.zeros(problem.n_classes)
                if problem.n_classes:
                    outs[tree.classes_] = value[0] / value[0].sum()
                leaves[node] = Leaf(tuple(LeafFormula(float(v)) for v in np.round(outs, 12)))
                return
            f = int(t.feature[i])
            c = problem.columns[f]
            if hasattr(c, "codes"):
                up = [l for k, l in enumerate(c.levels) if k > t.threshold[i]]
                splits[node] = Split((Term(f, 1.0, tuple(up), 0.0),), 0.5)
            else:
                splits[node] = Split((Term(f, 1.0),), float(t.threshold[i]), bool(0 < t.threshold[i]))
            visit(t.children_left[i], 2 * node + 1)
            visit(t.children_right[i], 2 * node + 2)

        visit(0, 0)
        record = with_rows(ReadableRecord(splits, leaves), problem)
        if record.n_leaves not in [m.n_leaves for m in family]:
            family.append(FamilyMember(record.n_leaves, 0.5 + n / 100, 0.1, record))
    return Found([m for m in family if m.n_leaves <= most][-1].record, tuple(family), {"stage": "greedy"})
