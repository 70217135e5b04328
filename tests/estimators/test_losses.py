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
POWERS = {"poisson": 1.0, "tweedie": 1.5, "gamma": 2.0}
ROUTING = pytest.mark.parametrize("routing", ["soft", "hard"])
LEAF = pytest.mark.parametrize("leaf", ["constant", "linear", "additive"])
SAME = ROUNDING[torch.float32]


def means(x: Floats) -> Floats:
    found: Floats = np.exp(x[:, 0] + 0.5 * (x[:, 1] > 0))
    return found


def amounts(loss: str, x: Floats, *, seed: int = 1) -> Floats:
    """Counts, or positive numbers, whose means are known."""
    random = np.random.default_rng(seed)
    if loss == "gamma":
        return random.gamma(2.0, means(x) / 2)
    return random.poisson(means(x)).astype(np.float64)


@cache
def of_amounts(loss: str, routing: str = "soft", leaf: str = "constant", **options: Any) -> Any:
    tree = regressor(loss=loss, routing=routing, leaf=leaf, depth=3, max_epochs=20, **options)
    return tree.fit(X, amounts(loss, X))


@cache
def of_two_classes(routing: str = "soft", leaf: str = "constant", loss: str = "binary_cross_entropy") -> Any:
    return classifier(loss=loss, routing=routing, leaf=leaf, depth=3, max_epochs=20).fit(X, labels(X, ("no", "yes")))


@pytest.mark.parametrize("quantile", [0.1, 0.9])
@pytest.mark.parametrize(
    "options",
    [{}, {"leaf": "linear"}, {"routing": "hard"}, {"routing": "hard", "leaf": "additive"},
     {"routing": "hard", "max_split_features": 1}],
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


@pytest.mark.parametrize("loss", POWERS)
@ROUTING
@LEAF
def test_log_losses_are_smaller_than_those_of_the_mean(loss: str, routing: str, leaf: str) -> None:
    new, tree = table(1000, seed=7), of_amounts(loss, routing, leaf)
    y = amounts(loss, new, seed=9)
    for hard in (False, True):
        predicted = tree.predict(new, hard=hard)
        assert (predicted > 0).all()
        mean = np.full(len(y), amounts(loss, X).mean())
        found, of_mean = (mean_tweedie_deviance(y, values, power=POWERS[loss]) for values in (predicted, mean))
        # The paths of a soft tree are not made for predictions.
        assert found < (1.0 if hard and routing == "soft" else 0.75) * of_mean


@pytest.mark.parametrize("loss", POWERS)
def test_predictions_of_log_losses_grow_with_the_unit_of_y(loss: str) -> None:
    x, y = X, amounts(loss, X)
    small, large = (regressor(loss=loss).fit(x, factor * y).predict(x) for factor in (1.0, 1024.0))
    assert_allclose(1024 * small, large, rtol=1e-4)


@pytest.mark.parametrize("loss", POWERS)
def test_training_with_a_log_loss_starts_at_the_mean(loss: str) -> None:
    y = amounts(loss, X)
    tree = regressor(loss=loss, learning_rate=1e-9, max_epochs=1).fit(X, y)
    assert_allclose(tree.predict(X), y.mean(), rtol=1e-4)


@ROUTING
def test_several_outputs_have_log_losses(routing: str) -> None:
    y = np.column_stack((amounts("poisson", X), 100 * amounts("poisson", X, seed=2)))
    found = regressor(loss="poisson", routing=routing, leaf="linear").fit(X, y).predict(X)
    assert found.shape == (200, 2)
    assert found[:, 1].mean() == pytest.approx(y[:, 1].mean(), rel=0.3)


@pytest.mark.parametrize(
    ("loss", "value", "message"),
    [
        ("poisson", -1.0, "y must not be negative with loss='poisson', got -1, first in row 3"),
        ("tweedie", -0.5, "y must not be negative with loss='tweedie', got -0.5, first in row 3"),
        ("gamma", 0.0, "y must be positive with loss='gamma', got 0, first in row 3"),
    ],
)
def test_targets_that_a_log_loss_cannot_have(loss: str, value: float, message: str) -> None:
    y = amounts("gamma", X)
    y[3] = value
    with pytest.raises(InputValueError, match=message):
        regressor(loss=loss).fit(X, y)
    with pytest.raises(InputValueError, match=message):
        regressor(loss=loss).fit(X, np.ones(len(X)), eval_set=(X, y))


def test_counts_that_are_all_zero() -> None:
    with pytest.raises(InputValueError, match="y must have a positive value in each column with loss='poisson'"):
        regressor(loss="poisson").fit(X, np.zeros(len(X)))


@pytest.mark.parametrize(
    "options", [{"quantile": 0.0}, {"quantile": 1}, {"tweedie_power": 1.0}, {"tweedie_power": 2}, {"quantile": "a"}]
)
def test_parameters_out_of_their_range(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        regressor(**options).fit(X, amounts("gamma", X))


@ROUTING
@LEAF
def test_one_logit_gives_probabilities_of_two_classes(routing: str, leaf: str) -> None:
    tree, y = of_two_classes(routing, leaf), labels(X, ("no", "yes"))
    assert tree.tree_.leaves.bias.shape == (1,)
    for hard in (False, True):
        shares = tree.predict_proba(X, hard=hard)
        assert_allclose(shares.sum(1), 1.0)
        assert_array_equal(tree.predict(X, hard=hard), np.where(shares[:, 1] > 0.5, "yes", "no"))
        assert_allclose(np.exp(tree.predict_log_proba(X, hard=hard)), shares)
        assert log_loss(y, shares) < 0.45
    logit = tree.decision_function(X)
    assert_allclose(1 / (1 + np.exp(-logit)), tree.predict_proba(X)[:, 1])


@ROUTING
def test_one_logit_is_as_good_as_two_scores(routing: str) -> None:
    y = labels(X, ("no", "yes"))
    one, two = (of_two_classes(routing, "linear", loss) for loss in ("binary_cross_entropy", "cross_entropy"))
    assert log_loss(y, one.predict_proba(X)) < log_loss(y, two.predict_proba(X)) + 0.05


@pytest.mark.parametrize("names", ["a", "abc"])
def test_one_logit_needs_two_classes(names: str) -> None:
    message = rf"y must have two classes with loss='binary_cross_entropy', got {len(names)}. Use loss='cross_entropy'"
    with pytest.raises(InputValueError, match=message):
        classifier(loss="binary_cross_entropy").fit(X, labels(X, names))


def test_weights_of_two_classes() -> None:
    y = labels(X, ("no", "yes"))
    heavy = classifier(loss="binary_cross_entropy", class_weight={"no": 1, "yes": 20}, max_epochs=20).fit(X, y)
    assert heavy.predict_proba(X)[:, 1].mean() > of_two_classes().predict_proba(X)[:, 1].mean() + 0.1


def test_two_classes_are_learned_part_by_part() -> None:
    y = labels(X, ("no", "yes"))
    tree = classifier(loss="binary_cross_entropy")
    tree.partial_fit(X, y, classes=["no", "yes"])
    tree.partial_fit(X[y == "no"], y[y == "no"])  # broke: the rows of one class alone were refused
    assert tree.predict_proba(X).shape == (200, 2)


def test_targets_of_the_losses() -> None:
    y = amounts("gamma", X)
    kinds = {loss: type(regressor(loss=loss, max_epochs=1).fit(X, y).target_) for loss in ("quantile", *POWERS)}
    assert kinds == {"quantile": Numbers} | dict.fromkeys(POWERS, LogNumbers)
    assert type(of_two_classes().target_) is TwoClasses
    assert type(of_two_classes(loss="cross_entropy").target_) is Classes


MADE: dict[str, Any] = {
    **{loss: lambda routing, leaf, loss=loss: of_amounts(loss, routing, leaf) for loss in POWERS},
    "binary_cross_entropy": of_two_classes,
}


def answers(tree: Any, x: Floats, *, hard: bool = False) -> Floats:
    predict = tree.predict if isinstance(tree, ArgminTreeRegressor) else tree.predict_proba
    found: Floats = predict(x, hard=hard)
    return found


@pytest.mark.parametrize("loss", MADE)
@ROUTING
@LEAF
def test_files_keep_predictions(loss: str, routing: str, leaf: str, tmp_path: Path) -> None:
    tree = MADE[loss](routing, leaf)
    prunus.save(tree, tmp_path / "tree.prunus")
    again = prunus.load(tmp_path / "tree.prunus")
    assert again.get_params() == tree.get_params()
    for hard in (False, True):
        assert_array_equal(answers(again, X, hard=hard), answers(tree, X, hard=hard))


@pytest.mark.parametrize("loss", MADE)
@ROUTING
@LEAF
def test_onnx_predicts_the_same(loss: str, routing: str, leaf: str, tmp_path: Path) -> None:
    tree, new = MADE[loss](routing, leaf), table(500, seed=4)
    for hard in (False, True):
        session = InferenceSession(prunus.export_onnx(tree, tmp_path / "tree.onnx", hard=hard))
        expected = answers(tree, new, hard=hard)
        name = "variable" if isinstance(tree, ArgminTreeRegressor) else "probabilities"
        (found,) = session.run([name], {"X": new})
        assert_allclose(found, expected, rtol=20 * SAME, atol=SAME)
        if name == "probabilities":
            (label,) = session.run(["label"], {"X": new})
            clear = np.abs(expected[:, 1] - 0.5) > SAME
            assert_array_equal(label[clear], tree.predict(new, hard=hard)[clear])


@pytest.mark.parametrize("loss", MADE)
def test_a_loaded_tree_is_trained_on(loss: str, tmp_path: Path) -> None:
    tree = MADE[loss]("soft", "constant")
    prunus.save(tree, tmp_path / "tree.prunus")
    y = labels(X, ("no", "yes")) if loss == "binary_cross_entropy" else amounts(loss, X)
    found = prunus.load(tmp_path / "tree.prunus").partial_fit(X, y)
    assert_allclose(answers(found, X), answers(tree, X), atol=0.5 * answers(tree, X).max())
    assert found.n_iter_ == tree.n_iter_ + 1


@pytest.mark.parametrize(("first", "second"), [("squared_error", "poisson"), ("gamma", "huber")])
def test_training_does_not_go_on_with_outputs_of_another_kind(first: str, second: str) -> None:
    y = amounts("gamma", X)
    tree = regressor(loss=first, warm_start=True).fit(X, y)
    with pytest.raises(InputValueError, match="loss must have outputs of the same kind as in the last fit"):
        tree.set_params(loss=second).fit(X, y)


def test_training_goes_on_with_another_quantile() -> None:
    y = amounts("gamma", X)
    tree = regressor(loss="quantile", quantile=0.5, warm_start=True, max_epochs=30).fit(X, y)
    low = tree.predict(X, hard=True)
    tree.set_params(quantile=0.9).fit(X, y)
    assert np.mean(y <= low) < 0.65
    assert np.mean(y <= tree.predict(X, hard=True)) > 0.8


def test_a_checkpoint_of_another_quantile_is_refused(tmp_path: Path) -> None:
    y, file = amounts("gamma", X), tmp_path / "run.checkpoint"
    tree = regressor(loss="quantile", quantile=0.8, checkpoint=file)
    tree.keeps_checkpoint = True
    tree.fit(X, y)
    with pytest.raises(CheckpointError, match=r"loss: quantile\(0.8\) there, quantile\(0.9\) here"):
        clone(tree).set_params(quantile=0.9).fit(X, y)


@pytest.mark.parametrize("loss", MADE)
def test_fitted_trees_can_be_pickled(loss: str) -> None:
    tree = MADE[loss]("soft", "constant")
    assert_array_equal(answers(pickle.loads(pickle.dumps(tree)), X), answers(tree, X))


def test_named_losses_can_be_pickled() -> None:
    for loss in LOSSES.values():
        again = pickle.loads(pickle.dumps(loss))
        assert isinstance(again, NamedLoss)
        assert again == loss


@pytest.mark.parametrize("loss", MADE)
@LEAF
def test_text_dict_and_pictures_are_made(loss: str, leaf: str) -> None:
    tree = MADE[loss]("soft", leaf)
    text, found = prunus.export_text(tree), prunus.export_dict(tree)
    assert ("class: yes" in text) == (loss == "binary_cross_entropy")
    assert found["link"] == ("logit" if loss == "binary_cross_entropy" else "log")
    assert "<svg" in tree._repr_html_()
    assert "digraph" in str(prunus.export_graphviz(tree))


def test_the_nodes_of_one_logit_have_shares_of_both_classes() -> None:
    root = prunus.tree_summary(of_two_classes()).nodes[0]
    assert_allclose(root.distribution, [0.5, 0.5])
    for node in prunus.tree_summary(of_two_classes()).nodes:
        assert sum(node.value) == pytest.approx(1.0)


def test_the_nodes_of_a_log_loss_have_means_in_the_units_of_y() -> None:
    root = prunus.tree_summary(of_amounts("poisson")).nodes[0]
    assert root.distribution[0] == pytest.approx(amounts("poisson", X).mean(), rel=1e-5)
    assert root.spread[0] == pytest.approx(amounts("poisson", X).std(), rel=1e-5)


def test_curves_and_offset_of_a_log_loss_are_the_logarithm_of_a_prediction() -> None:
    tree = of_amounts("poisson", "hard", "additive")
    summary = prunus.tree_summary(tree)
    leaves = {node.node: node for node in summary.nodes if node.is_leaf}
    for row, end, predicted in zip(X[:20], tree.apply(X[:20]), tree.predict(X[:20]), strict=True):
        total = leaves[end].offset[0] + sum(curve.at(row[curve.feature])[0] for curve in summary.curves)
        assert np.exp(total) == pytest.approx(predicted, rel=1e-4)


def test_scikit_learn_knows_that_log_losses_need_positive_targets() -> None:
    assert ArgminTreeRegressor(loss="poisson").__sklearn_tags__().target_tags.positive_only
    assert not ArgminTreeRegressor().__sklearn_tags__().target_tags.positive_only
    assert "quantile" not in ArgminTreeClassifier().get_params()
