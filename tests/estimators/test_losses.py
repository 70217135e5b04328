"""The losses of the estimators: what their predictions are, with all routes and along one path."""

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from onnxruntime import InferenceSession  # type: ignore[import-untyped]
from sklearn.base import clone
from sklearn.metrics import log_loss, mean_tweedie_deviance

import prunus
from prunus import ArgminTreeClassifier, ArgminTreeRegressor
from prunus.errors import CheckpointError, InputValueError
from prunus.targets import Classes, LogNumbers, Numbers, TwoClasses
from prunus.training import LOSSES, NamedLoss
from tests.estimators.problems import Floats, classifier, labels, regressor, table
from tests.tolerances import ROUNDING

X = table(200)
YES = labels(X, ("no", "yes"))
POWERS = {"poisson": 1.0, "tweedie": 1.5, "gamma": 2.0}
LOSS = pytest.mark.parametrize("loss", POWERS)
FORM = pytest.mark.parametrize(
    ("routing", "leaf"), [("soft", "constant"), ("soft", "additive"), ("hard", "constant"), ("hard", "linear")]
)
SAME = ROUNDING[torch.float32]


def amounts(loss: str, x: Floats, *, seed: int = 1) -> Floats:
    """Counts, or positive numbers, whose means are known."""
    random, means = np.random.default_rng(seed), np.exp(x[:, 0] + 0.5 * (x[:, 1] > 0))
    if loss == "gamma":
        return random.gamma(2.0, means / 2)
    return random.poisson(means).astype(np.float64)


@cache
def fitted(loss: str, routing: str = "soft", leaf: str = "constant") -> Any:
    """A fitted tree; tests only read it."""
    options: dict[str, Any] = {"loss": loss, "routing": routing, "leaf": leaf, "depth": 3, "max_epochs": 20}
    return (regressor(**options) if loss in POWERS else classifier(**options)).fit(X, target(loss))


def target(loss: str) -> Any:
    return amounts(loss, X) if loss in POWERS else YES


def answers(tree: Any, x: Floats, *, hard: bool = False) -> Floats:
    predict = tree.predict if isinstance(tree, ArgminTreeRegressor) else tree.predict_proba
    found: Floats = predict(x, hard=hard)
    return found


@pytest.mark.parametrize(
    ("quantile", "options"),
    [(0.1, {}), (0.9, {"leaf": "linear"}), (0.1, {"routing": "hard"}), (0.9, {"routing": "hard", "leaf": "additive"}),
     (0.9, {"routing": "hard", "max_split_features": 1})],
    ids=str,
)  # fmt: skip
def test_the_wanted_share_of_a_skewed_target_lies_below_the_quantile(quantile: float, options: dict[str, Any]) -> None:
    x, new = table(1500), table(4000, seed=8)
    y, unseen = (np.exp(part[:, 0] + np.random.default_rng(3).normal(size=len(part))) for part in (x, new))
    tree = ArgminTreeRegressor(loss="quantile", quantile=quantile, depth=3, max_epochs=20, random_state=0, **options)
    tree.fit(x, y)
    for hard in (False, True):  # broke, if corrections were means: 0.9 became 0.7
        assert np.mean(unseen <= tree.predict(new, hard=hard)) == pytest.approx(quantile, abs=0.04)


def test_the_quantile_one_half_is_the_absolute_error() -> None:
    y = amounts("gamma", X)
    half, absolute = (regressor(loss=loss).fit(X, y) for loss in ("quantile", "absolute_error"))
    # One loss is half the other, which clipping of gradients and rounding tell apart.
    assert_allclose(half.predict(X), absolute.predict(X), rtol=0, atol=1e-2 * y.std())


@LOSS
@FORM
def test_log_losses_are_smaller_than_those_of_the_mean(loss: str, routing: str, leaf: str) -> None:
    new, tree = table(1000, seed=7), fitted(loss, routing, leaf)
    y = amounts(loss, new, seed=9)
    of_mean = mean_tweedie_deviance(y, np.full(len(y), amounts(loss, X).mean()), power=POWERS[loss])
    for hard in (False, True):
        predicted = tree.predict(new, hard=hard)
        assert (predicted > 0).all()
        # The paths of a soft tree are not made for predictions.
        limit = (1.0 if hard and routing == "soft" else 0.75) * of_mean
        assert mean_tweedie_deviance(y, predicted, power=POWERS[loss]) < limit


@LOSS
def test_log_losses_know_the_unit_of_y_and_start_at_the_mean(loss: str) -> None:
    y = amounts(loss, X)
    small, large = (regressor(loss=loss).fit(X, factor * y).predict(X) for factor in (1.0, 1024.0))
    assert_allclose(1024 * small, large, rtol=1e-4)
    start = regressor(loss=loss, learning_rate=1e-9, max_epochs=1).fit(X, y)
    assert_allclose(start.predict(X), y.mean(), rtol=1e-4)


@pytest.mark.parametrize("routing", ["soft", "hard"])
def test_several_outputs_have_log_losses(routing: str) -> None:
    y = np.column_stack((amounts("poisson", X), 100 * amounts("poisson", X, seed=2)))
    found = regressor(loss="poisson", routing=routing, leaf="linear").fit(X, y).predict(X)
    assert found.shape == (200, 2)
    assert found[:, 1].mean() == pytest.approx(y[:, 1].mean(), rel=0.3)


@FORM
def test_one_logit_gives_probabilities_of_two_classes(routing: str, leaf: str) -> None:
    tree = fitted("binary_cross_entropy", routing, leaf)
    assert tree.tree_.leaves.bias.shape == (1,)
    for hard in (False, True):
        shares = tree.predict_proba(X, hard=hard)
        assert_allclose(shares.sum(1), 1.0)
        assert_array_equal(tree.predict(X, hard=hard), np.where(shares[:, 1] > 0.5, "yes", "no"))
        assert_allclose(np.exp(tree.predict_log_proba(X, hard=hard)), shares)
        assert log_loss(YES, shares) < 0.45
    assert_allclose(1 / (1 + np.exp(-tree.decision_function(X))), tree.predict_proba(X)[:, 1])
    one, two = (fitted(loss, routing, "linear") for loss in ("binary_cross_entropy", "cross_entropy"))
    assert log_loss(YES, one.predict_proba(X)) < log_loss(YES, two.predict_proba(X)) + 0.05


def test_two_classes_have_weights_and_are_learned_part_by_part() -> None:
    loss = "binary_cross_entropy"
    heavy = classifier(loss=loss, class_weight={"no": 1, "yes": 20}, max_epochs=20).fit(X, YES)
    assert heavy.predict_proba(X)[:, 1].mean() > fitted(loss).predict_proba(X)[:, 1].mean() + 0.1
    tree = classifier(loss=loss)
    tree.partial_fit(X, YES, classes=["no", "yes"])
    tree.partial_fit(X[YES == "no"], YES[YES == "no"])  # broke: the rows of one class alone were refused
    assert tree.predict_proba(X).shape == (200, 2)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"loss": "poisson"}, -1.0, "y must not be negative with loss='poisson', got -1, first in row 3"),
        ({"loss": "tweedie"}, -0.5, "y must not be negative with loss='tweedie', got -0.5, first in row 3"),
        ({"loss": "gamma"}, 0.0, "y must be positive with loss='gamma', got 0, first in row 3"),
        ({"loss": "poisson"}, np.zeros(200), "y must have a positive value in each column with loss='poisson'"),
        *(({name: wrong}, 1.0, name) for name, wrong in [("quantile", 0.0), ("quantile", 1), ("quantile", "a"),
                                                         ("tweedie_power", 1.0), ("tweedie_power", 2)]),
        ({"loss": "huber", "quantile": 0.9}, 1.0, "quantile must be .* unless loss is 'quantile', got loss='huber'"),
        ({"loss": "huber", "tweedie_power": 1.2}, 1.0, "tweedie_power must be .* unless loss is 'tweedie', got los"),
        *(({"loss": "binary_cross_entropy"}, labels(X, names),
           f"y must have two classes with loss='binary_cross_entropy', got {len(names)}. Use loss='cross_entropy'")
          for names in ("a", "abc")),
    ],
)  # fmt: skip
def test_targets_and_options_that_a_loss_cannot_have(options: dict[str, Any], y: Any, message: str) -> None:
    good = amounts("gamma", X)
    if isinstance(y, float):
        y = np.where(np.arange(200) == 3, y, good)
    tree: Any = classifier(**options) if y.dtype.kind == "U" else regressor(**options)
    with pytest.raises(ValueError, match=message):
        tree.fit(X, y)
    if "first in row" in message:
        with pytest.raises(InputValueError, match=message):
            tree.fit(X, good, eval_set=(X, y))


def test_targets_of_the_losses() -> None:
    y = amounts("gamma", X)
    kinds = {loss: type(regressor(loss=loss, max_epochs=1).fit(X, y).target_) for loss in ("quantile", *POWERS)}
    assert kinds == {"quantile": Numbers} | dict.fromkeys(POWERS, LogNumbers)
    assert type(fitted("binary_cross_entropy").target_) is TwoClasses
    assert type(fitted("cross_entropy").target_) is Classes
    assert ArgminTreeRegressor(loss="poisson").__sklearn_tags__().target_tags.positive_only
    assert not ArgminTreeRegressor().__sklearn_tags__().target_tags.positive_only
    assert "quantile" not in ArgminTreeClassifier().get_params()


@pytest.mark.parametrize("loss", [*POWERS, "binary_cross_entropy"])
@FORM
def test_files_pickles_onnx_and_words_keep_predictions(loss: str, routing: str, leaf: str, tmp_path: Path) -> None:
    tree, new, is_class = fitted(loss, routing, leaf), table(500, seed=4), loss not in POWERS
    prunus.save(tree, tmp_path / "tree.prunus")
    for again in (prunus.load(tmp_path / "tree.prunus"), pickle.loads(pickle.dumps(tree))):
        assert again.get_params() == tree.get_params()
        for hard in (False, True):
            assert_array_equal(answers(again, X, hard=hard), answers(tree, X, hard=hard))
    if (routing, leaf) == ("soft", "constant"):
        found = prunus.load(tmp_path / "tree.prunus").partial_fit(X, target(loss))
        assert_allclose(answers(found, X), answers(tree, X), atol=0.5 * answers(tree, X).max())
        assert found.n_iter_ == tree.n_iter_ + 1
    for hard in (False, True):
        session = InferenceSession(prunus.export_onnx(tree, tmp_path / "tree.onnx", hard=hard))
        expected = answers(tree, new, hard=hard)
        (predicted,) = session.run(["probabilities" if is_class else "variable"], {"X": new})
        assert_allclose(predicted, expected, rtol=20 * SAME, atol=SAME)
        if is_class:
            (label,) = session.run(["label"], {"X": new})
            clear = np.abs(expected[:, 1] - 0.5) > SAME
            assert_array_equal(label[clear], tree.predict(new, hard=hard)[clear])
    assert ("class: yes" in prunus.export_text(tree)) == is_class
    assert prunus.export_dict(tree)["link"] == ("logit" if is_class else "log")
    assert "<svg" in tree._repr_html_()
    assert "digraph" in str(prunus.export_graphviz(tree))


@pytest.mark.parametrize(("first", "second"), [("squared_error", "poisson"), ("gamma", "huber")])
def test_training_does_not_go_on_with_outputs_of_another_kind(first: str, second: str) -> None:
    y = amounts("gamma", X)
    tree = regressor(loss=first, warm_start=True).fit(X, y)
    with pytest.raises(InputValueError, match="loss must have outputs of the same kind as in the last fit"):
        tree.set_params(loss=second).fit(X, y)


def test_training_goes_on_with_another_quantile_but_no_checkpoint_does(tmp_path: Path) -> None:
    y = amounts("gamma", X)
    tree = regressor(loss="quantile", quantile=0.5, warm_start=True, max_epochs=30).fit(X, y)
    low = tree.predict(X, hard=True)
    tree.set_params(quantile=0.9).fit(X, y)
    assert np.mean(y <= low) < 0.65
    assert np.mean(y <= tree.predict(X, hard=True)) > 0.8
    kept: Any = regressor(loss="quantile", quantile=0.8, checkpoint=tmp_path / "run.checkpoint")
    kept.keeps_checkpoint = True
    kept.fit(X, y)
    with pytest.raises(CheckpointError, match=r"loss: quantile\(0.8\) there, quantile\(0.9\) here"):
        clone(kept).set_params(quantile=0.9).fit(X, y)


def test_named_losses_can_be_pickled() -> None:
    for loss in LOSSES.values():
        again = pickle.loads(pickle.dumps(loss))
        assert isinstance(again, NamedLoss)
        assert again == loss


def test_nodes_tell_shares_of_both_classes_or_means_in_the_units_of_y() -> None:
    nodes = prunus.tree_summary(fitted("binary_cross_entropy")).nodes
    assert_allclose(nodes[0].distribution, [0.5, 0.5])
    assert [sum(node.value) for node in nodes] == pytest.approx([1.0] * len(nodes))
    root, y = prunus.tree_summary(fitted("poisson")).nodes[0], amounts("poisson", X)
    assert (root.distribution[0], root.spread[0]) == pytest.approx((y.mean(), y.std()), rel=1e-5)
    tree = fitted("poisson", "hard", "additive")
    summary = prunus.tree_summary(tree)
    leaves = {node.node: node for node in summary.nodes if node.is_leaf}
    for row, end, predicted in zip(X[:20], tree.apply(X[:20]), tree.predict(X[:20]), strict=True):
        total = leaves[end].offset[0] + sum(curve.at(row[curve.feature])[0] for curve in summary.curves)
        assert np.exp(total) == pytest.approx(predicted, rel=1e-4)
