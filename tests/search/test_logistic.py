"""Logistic regression by Newton's method, beside that of scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from prunus.search.class_formulas import fit_scores


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_are_those_of_scikit_learn(k: int, weighted: bool) -> None:
    random = np.random.default_rng(k)
    x = random.normal(size=(163, 3))
    labels = (x @ random.normal(size=(3, k)) + random.gumbel(size=(163, k))).argmax(1)
    weight = random.uniform(0.5, 3, 163) if weighted else np.ones(163)
    design = np.column_stack((np.ones(163), x))
    found = fit_scores(design, np.eye(k)[labels], weight, np.array([0.0, 1.0, 1.0, 1.0]))
    other = LogisticRegression(C=2.0 if k == 2 else 1.0, tol=1e-10, max_iter=10_000).fit(x, labels, weight)
    scores = design @ found.weights
    shares = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(shares, other.predict_proba(x), atol=1e-5)


def test_the_loss_and_the_curvature_are_those_of_all_rows() -> None:
    design = np.column_stack((np.ones(5), [0.0, 1.0, 2.0, 3.0, 7.0]))
    labels, weight = np.array([0, 1, 0, 1, 1]), np.array([1.0, 2.0, 1.0, 1.0, 0.5])
    found = fit_scores(design, np.eye(2)[labels], weight, np.array([0.0, 0.3]))
    shares = 1 / (1 + np.exp(design @ (found.weights[:, 0] - found.weights[:, 1])))
    own = np.where(labels == 1, shares, 1 - shares)
    assert found.loss == pytest.approx(-(weight * np.log(own)).sum())
    assert found.curvature[1, 1] == pytest.approx((weight * shares * (1 - shares) * design[:, 1] ** 2).sum())


def test_classes_that_are_separated_far_apart_still_converge() -> None:
    x = np.array([-1e3, -999.0, 999.0, 1e3])
    design = np.column_stack((np.ones(4), x))
    found = fit_scores(design, np.eye(2)[[0, 0, 1, 1]], np.ones(4), np.array([0.0, 1.0]))
    assert np.isfinite(found.weights).all()
    assert (design @ (found.weights[:, 1] - found.weights[:, 0]) > 0).tolist() == [False, False, True, True]
