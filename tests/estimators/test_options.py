"""Options: what they do, and what is said of those that cannot be used."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils._param_validation import InvalidParameterError
from torch import Tensor, nn
from torch.nn import functional

from prunus import ArgminTreeClassifier, ArgminTreeRegressor
from prunus.errors import InputTypeError, InputValueError, PrunusError, TrainingError
from prunus.fitting.training_options import nested
from tests.estimators.problems import KINDS, classifier, labels, regressor, table, values

X, Y = table(), labels(table())


class Tanh(nn.Module):
    """Splits that no table of names knows."""

    def __init__(self, features: int, depth: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, 2**depth - 1)

    def forward(self, x: Tensor) -> Tensor:
        return 2 * torch.tanh(self.linear(x))


class Blind(nn.Module):
    """Splits that do not look at their inputs."""

    def __init__(self, _features: int, depth: int) -> None:
        super().__init__()
        self.scores_of_all = nn.Parameter(torch.ones(2**depth - 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.scores_of_all.expand(len(x), -1)


def squared(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).square().mean(1)


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_every_kind_of_tree_learns_values(split: str, leaf: str) -> None:
    tree = regressor(split=split, leaf=leaf, max_epochs=40).fit(X, X[:, 0])
    assert tree.score(X, X[:, 0]) > 0.5


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_every_kind_of_tree_learns_classes(split: str, leaf: str) -> None:
    assert classifier(split=split, leaf=leaf, max_epochs=40).fit(X, Y).score(X, Y) > 0.8


@pytest.mark.parametrize("leaf", ["constant", "linear", "mlp"])
def test_splits_of_ones_own(leaf: str) -> None:
    tree = regressor(split=Tanh, leaf=leaf, max_epochs=40).fit(X, X[:, 0])
    assert isinstance(tree.model_.tree.split, Tanh)
    assert tree.score(X, X[:, 0]) > 0.3
    assert tree.feature_importances_.argmax() == 0
    assert np.isfinite(tree.predict(X, hard=True)).all()


def test_splits_of_ones_own_may_ignore_the_table() -> None:
    tree = regressor(split=Blind).fit(X, values(X))
    assert tree.feature_importances_.tolist() == [0.0, 0.0, 0.0]


def test_an_earlier_name_of_a_split_is_refused_with_those_of_today() -> None:
    with pytest.raises(ValueError, match=r"must be a str among .*'sparse_mlp'.* Got 'sparse' instead"):
        regressor(split="sparse").fit(X, values(X))


def test_a_split_factory_that_makes_no_module_is_refused() -> None:
    with pytest.raises(InputTypeError, match=r"split\(n_inputs, depth\) must return a torch.nn.Module, got int"):
        regressor(split=lambda _features, depth: depth).fit(X, values(X))


def test_a_split_with_another_number_of_scores_is_refused() -> None:
    with pytest.raises(InputValueError, match=r"scores of shape \(n, 3\), got \(60, 5\) from Linear"):
        regressor(split=lambda features, _depth: nn.Linear(features, 5)).fit(X, values(X))


def test_a_loss_of_ones_own() -> None:
    own, known = (regressor(loss=loss).fit(X, values(X)) for loss in (squared, "squared_error"))
    assert (own.history_["engine"][0], known.history_["engine"][0]) == ("torch", "native")
    assert_allclose(own.history_["train_loss"], known.history_["train_loss"], rtol=0.01)


def test_a_loss_of_ones_own_for_classes() -> None:
    def loss(output: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(output, target, label_smoothing=0.5)

    assert classifier(loss=loss).fit(X, Y).predict_proba(X).max() < 0.9


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
def test_losses_by_name(loss: str) -> None:
    assert regressor(loss=loss, leaf="linear", max_epochs=40).fit(X, X[:, 0]).score(X, X[:, 0]) > 0.5


def test_the_absolute_error_is_not_drawn_by_outliers() -> None:
    y = np.where(np.arange(len(X)) < 6, 1000.0, X[:, 0])
    drawn, not_drawn = (
        np.median(regressor(loss=loss, depth=0, max_epochs=100).fit(X, y).predict(X))
        for loss in ("squared_error", "absolute_error")
    )
    assert not_drawn < drawn / 2


def test_a_mean_for_a_loss_is_refused_with_weights() -> None:
    def mean(output: Tensor, target: Tensor) -> Tensor:
        return squared(output, target).mean()

    with pytest.raises(InputValueError, match="reduction='none'"):
        regressor(loss=mean).fit(X, values(X), sample_weight=np.linspace(1, 2, len(X)))


def test_a_loss_that_is_no_number_is_an_error() -> None:
    with pytest.raises(TrainingError, match="the training loss became nan in epoch 1"):
        regressor(loss=lambda output, target: squared(output, target) * float("nan")).fit(X, values(X))


@pytest.mark.parametrize("optimizer", ["adamw", "qhadam", "sgd", torch.optim.RMSprop])
def test_optimizers(optimizer: Any) -> None:
    losses = regressor(optimizer=optimizer, max_epochs=20).fit(X, values(X)).history_["train_loss"]
    assert losses[-1] < losses[0]


def test_optimizers_differ() -> None:
    assert len({regressor(optimizer=name).fit(X, values(X)).predict(X)[0] for name in ("adamw", "qhadam", "sgd")}) == 3


@pytest.mark.parametrize(
    ("schedule", "falls"), [("cosine", True), ("plateau", False), ("constant", False)], ids=lambda option: str(option)
)
def test_schedules(schedule: str, falls: bool) -> None:
    rates = regressor(schedule=schedule, max_epochs=8).fit(X, values(X)).history_["learning_rate"]
    assert (rates[-1] < rates[2]) == falls


def test_a_learning_rate_of_ones_own() -> None:
    rates = regressor(schedule="constant", learning_rate=0.0125).fit(X, values(X)).history_["learning_rate"]
    assert rates == [0.0125] * 5


def test_weight_decay_shrinks_weights() -> None:
    weak, strong = (
        np.ptp(regressor(weight_decay=decay, leaf="linear", max_epochs=40).fit(X, values(X)).predict(X))
        for decay in (0.0, 30.0)
    )
    assert strong < weak


def test_a_batch_size_of_ones_own() -> None:
    sizes: list[int] = []

    def loss(output: Tensor, target: Tensor) -> Tensor:
        sizes.append(len(output))
        return squared(output, target)

    regressor(batch_size=25, max_epochs=1, loss=loss).fit(X, values(X))
    assert sizes == [25, 25, 10]


def test_numbers_of_numpy_are_numbers() -> None:
    options: dict[str, Any] = {"depth": 2, "max_epochs": 3, "batch_size": 16, "learning_rate": 0.5}
    ours, numpys = (
        regressor(**{name: convert(value) for name, value in options.items()}).fit(X, values(X)).predict(X)
        for convert in (lambda value: value, lambda value: np.array(value)[()])
    )
    assert_array_equal(ours, numpys)


def test_the_device_may_be_named() -> None:
    named = [regressor(device=name).fit(X, values(X)).predict(X) for name in ("auto", "cpu", torch.device("cpu"))]
    assert_array_equal(named[1:], [named[0], named[0]])


@pytest.mark.parametrize("device", ["gpu", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(device: str) -> None:
    with pytest.raises(InputValueError, match=f"device.*{device}"):
        regressor(device=device).fit(X, values(X))


BAD: list[tuple[str, Any]] = [
    ("depth", -1),
    ("depth", 17),
    ("depth", 2.5),
    ("depth", "4"),
    ("pruning_strength", -1.0),
    ("pruning_strength", float("nan")),
    ("pruning_strength", float("inf")),
    ("split", "oblique"),
    ("split", 3),
    ("leaf", "forest"),
    ("leaf", nn.Linear),
    ("loss", "hinge"),
    ("max_epochs", 0),
    ("max_epochs", 1.5),
    ("max_epochs", "many"),
    ("batch_size", 0),
    ("learning_rate", 0.0),
    ("learning_rate", float("inf")),
    ("weight_decay", -0.1),
    ("optimizer", "adam"),
    ("schedule", "step"),
    ("early_stopping_rounds", 0),
    ("validation_fraction", 0.0),
    ("validation_fraction", 1.0),
    ("device", 3),
    ("random_state", "seed"),
    ("warm_start", "yes"),
    ("checkpoint", 3),
    ("verbose", "much"),
    ("callbacks", print),
]


@pytest.mark.parametrize("kind", [ArgminTreeClassifier, ArgminTreeRegressor], ids=["classifier", "regressor"])
@pytest.mark.parametrize(("name", "value"), BAD, ids=[f"{name}={value}" for name, value in BAD])
def test_options_that_cannot_be_used_are_named(kind: Any, name: str, value: Any) -> None:
    options = nested({name: value})
    owner = kind.__name__ if name in options else "TrainingOptions"
    with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of {owner} must be"):
        kind().set_params(**options).fit(X, Y)


def test_an_option_of_training_is_shown_the_way() -> None:
    said = r"has no option 'batch_size'. Use training=TrainingOptions\(batch_size=...\)"
    with pytest.raises(InputTypeError, match=said):
        ArgminTreeClassifier(batch_size=32)  # type: ignore[call-arg]
    with pytest.raises(InputTypeError, match=said):
        ArgminTreeClassifier().set_params(batch_size=32)
    with pytest.raises(InputValueError, match="training has no option 'depth'"):
        ArgminTreeClassifier().set_params(training__depth=3)


@pytest.mark.parametrize("name", ["depth", "max_epochs"])
def test_true_is_no_number(name: str) -> None:
    with pytest.raises(PrunusError, match=f"{name} must be an int"):
        classifier(**{name: True}).fit(X, Y)


@pytest.mark.parametrize(
    ("tree", "loss"),
    [(classifier(), "squared_error"), (classifier(), "huber"), (regressor(), "cross_entropy")],
    ids=["squares-of-classes", "huber-of-classes", "entropy-of-values"],
)
def test_a_loss_for_the_other_kind_of_target_is_refused(tree: Any, loss: str) -> None:
    with pytest.raises(InvalidParameterError, match="The 'loss' parameter"):
        tree.set_params(loss=loss).fit(X, Y)


@pytest.mark.parametrize("weight", ["balance", [1.0, 2.0], 3])
def test_class_weights_of_another_form_are_refused(weight: Any) -> None:
    with pytest.raises(InvalidParameterError, match="The 'class_weight' parameter"):
        classifier(class_weight=weight).fit(X, Y)


def test_options_are_not_looked_at_before_fit() -> None:
    assert ArgminTreeRegressor(depth=-1).depth == -1


def test_options_have_names_only() -> None:
    with pytest.raises(TypeError, match="positional"):
        ArgminTreeRegressor(3)  # type: ignore[call-arg]


def test_a_folder_for_the_checkpoint_is_made(tmp_path: Path) -> None:
    regressor(max_epochs=10, checkpoint=tmp_path / "new" / "fit.ckpt").fit(X, values(X))
    assert (tmp_path / "new").is_dir()


def test_networks_in_the_leaves_have_the_layers_that_were_asked_for() -> None:
    tree = regressor(leaf="mlp", hidden_layer_sizes=(5, 4), dropout=0.25).fit(X, values(X))
    network = tree.tree_.leaves.network
    assert [len(bias) for bias in network.biases] == [5, 4, 1]
    assert tree.model_.head.options()["dropout"] == 0.25


def test_a_network_without_hidden_layers_is_linear() -> None:
    tree = regressor(leaf="mlp", hidden_layer_sizes=()).fit(X, values(X))
    assert len(tree.tree_.leaves.network.weights) == 1


@pytest.mark.parametrize("sizes", [(0,), (2.5,), ("4",), (True,), (10**12,), np.array(4)], ids=str)
def test_sizes_of_layers_that_cannot_be(sizes: Any) -> None:
    with pytest.raises(InputValueError, match="hidden_layer_sizes must be integers from 1 to 65_536, got"):
        regressor(leaf="mlp", hidden_layer_sizes=sizes).fit(X, values(X))


def test_the_number_of_threads_does_not_matter() -> None:
    one, all_cores = (regressor(n_jobs=n_jobs).fit(X, values(X)).predict(X) for n_jobs in (1, -1))
    assert_array_equal(one, all_cores)


def test_no_threads_are_refused() -> None:
    with pytest.raises(InputValueError, match="n_jobs must be None or an int other than 0, got n_jobs=0"):
        regressor(n_jobs=0).fit(X, values(X))


@pytest.mark.parametrize("leaf", ["constant", "mlp"])
def test_columns_that_do_not_vary_change_little(leaf: str) -> None:
    x = np.random.default_rng(0).normal(size=(1_000, 4))
    wide, y = np.hstack([x, np.ones((1_000, 40))]), x[:, 0] ** 2 + x[:, 1]
    scores = [
        regressor(leaf=leaf, max_split_features=2, max_epochs=20).fit(table, y).score(table, y) for table in (x, wide)
    ]
    assert scores[1] > scores[0] - 0.05
