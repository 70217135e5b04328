"""Options: what they do, and that those that cannot be used are refused by an error that names them."""

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
from prunus.errors import InputTypeError, InputValueError, TrainingError
from prunus.fitting.training_options import nested
from tests.estimators.problems import KINDS, classifier, labels, regressor, table, values

X, Y, V = table(), labels(table()), values(table())


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


def mean(output: Tensor, target: Tensor) -> Tensor:
    return squared(output, target).mean()


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_every_kind_of_tree_learns(split: str, leaf: str) -> None:
    assert regressor(split=split, leaf=leaf, max_epochs=40).fit(X, X[:, 0]).score(X, X[:, 0]) > 0.5
    assert classifier(split=split, leaf=leaf, max_epochs=40).fit(X, Y).score(X, Y) > 0.8


@pytest.mark.parametrize("leaf", ["constant", "linear", "mlp"])
def test_splits_of_ones_own(leaf: str) -> None:
    tree = regressor(split=Tanh, leaf=leaf, max_epochs=40).fit(X, X[:, 0])
    assert isinstance(tree.model_.tree.split, Tanh)
    assert tree.score(X, X[:, 0]) > 0.3
    assert tree.feature_importances_.argmax() == 0
    assert np.isfinite(tree.predict(X, hard=True)).all()
    assert not regressor(split=Blind, leaf="constant").fit(X, V).feature_importances_.any()


def test_losses_of_ones_own() -> None:
    own, known = (regressor(loss=loss).fit(X, V) for loss in (squared, "squared_error"))
    assert (own.history_["engine"][0], known.history_["engine"][0]) == ("torch", "native")
    assert_allclose(own.history_["train_loss"], known.history_["train_loss"], rtol=0.01)

    def smooth(output: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(output, target, label_smoothing=0.5)

    assert classifier(loss=smooth).fit(X, Y).predict_proba(X).max() < 0.9
    sizes: list[int] = []

    def counting(output: Tensor, target: Tensor) -> Tensor:
        sizes.append(len(output))
        return squared(output, target)

    regressor(batch_size=25, max_epochs=1, loss=counting).fit(X, V)
    assert sizes == [25, 25, 10]


def test_losses_by_name() -> None:
    for loss in ("squared_error", "absolute_error", "huber"):
        assert regressor(loss=loss, leaf="linear", max_epochs=40).fit(X, X[:, 0]).score(X, X[:, 0]) > 0.5
    y = np.where(np.arange(len(X)) < 6, 1000.0, X[:, 0])
    drawn, not_drawn = (
        np.median(regressor(loss=loss, depth=0, max_epochs=100).fit(X, y).predict(X))
        for loss in ("squared_error", "absolute_error")
    )
    assert not_drawn < drawn / 2


def test_optimizers_differ_and_learn() -> None:
    trees = [regressor(optimizer=name, max_epochs=20).fit(X, V) for name in ("adamw", "qhadam", "sgd")]
    assert len({tree.predict(X)[0] for tree in trees}) == 3
    trees.append(regressor(optimizer=torch.optim.RMSprop, max_epochs=20).fit(X, V))
    for tree in trees:
        assert tree.history_["train_loss"][-1] < tree.history_["train_loss"][0]


def test_schedules_rates_and_decay() -> None:
    for schedule, falls in (("cosine", True), ("plateau", False), ("constant", False)):
        rates = regressor(schedule=schedule, max_epochs=8).fit(X, V).history_["learning_rate"]
        assert (rates[-1] < rates[2]) == falls
    rates = regressor(schedule="constant", learning_rate=0.0125).fit(X, V).history_["learning_rate"]
    assert rates == [0.0125] * 5
    weak, strong = (regressor(weight_decay=decay, leaf="linear", max_epochs=40).fit(X, V) for decay in (0.0, 30.0))
    assert np.ptp(strong.predict(X)) < np.ptp(weak.predict(X))


def test_numbers_of_numpy_large_batches_threads_and_devices_change_nothing() -> None:
    options: dict[str, Any] = {"depth": 2, "max_epochs": 3, "batch_size": 16, "learning_rate": 0.5}
    expected = regressor(**options).fit(X, V).predict(X)
    numpys = {name: np.array(value)[()] for name, value in options.items()}
    others = [numpys, *(options | {"n_jobs": n} for n in (1, -1))]
    others += [options | {"device": device} for device in ("auto", "cpu", torch.device("cpu"))]
    for same in others:
        assert_array_equal(regressor(**same).fit(X, V).predict(X), expected)
    large = [regressor(batch_size=size).fit(X, V).predict(X) for size in (10**400, 10**6)]
    assert_array_equal(*large)


def test_networks_have_the_layers_that_were_asked_for() -> None:
    tree = regressor(leaf="mlp", hidden_layer_sizes=(5, 4), dropout=0.25).fit(X, V)
    assert [len(bias) for bias in tree.tree_.leaves.network.biases] == [5, 4, 1]
    assert tree.model_.head.options()["dropout"] == 0.25
    assert len(regressor(leaf="mlp", hidden_layer_sizes=()).fit(X, V).tree_.leaves.network.weights) == 1


@pytest.mark.parametrize("leaf", ["constant", "mlp"])
def test_columns_that_do_not_vary_change_little(leaf: str) -> None:
    x = table(1_000, 4)
    wide, y = np.hstack([x, np.ones((1_000, 40))]), x[:, 0] ** 2 + x[:, 1]
    narrow_score, wide_score = (
        regressor(leaf=leaf, max_split_features=2, max_epochs=20).fit(rows, y).score(rows, y) for rows in (x, wide)
    )
    assert wide_score > narrow_score - 0.05


def test_a_folder_for_the_checkpoint_is_made(tmp_path: Path) -> None:
    regressor(max_epochs=10, checkpoint=tmp_path / "new" / "fit.ckpt").fit(X, V)
    assert (tmp_path / "new").is_dir()


INFINITE = float("inf")
BAD: dict[str, tuple[Any, ...]] = {
    "depth": (-1, 17, 2.5, "4"),
    "pruning_strength": (-1.0, float("nan"), INFINITE),
    "split": ("oblique", 3),
    "leaf": ("forest", nn.Linear),
    "loss": ("hinge",),
    "max_epochs": (0, 1.5, "many"),
    "batch_size": (0,),
    "learning_rate": (0.0, INFINITE),
    "weight_decay": (-0.1,),
    "optimizer": ("adam",),
    "schedule": ("step",),
    "early_stopping_rounds": (0,),
    "validation_fraction": (0.0, 1.0),
    "device": (3,),
    "random_state": ("seed",),
    "warm_start": ("yes",),
    "checkpoint": (3,),
    "verbose": ("much",),
    "callbacks": (print,),
}


@pytest.mark.parametrize("name", BAD)
def test_options_that_cannot_be_used_are_named(name: str) -> None:
    for kind in (ArgminTreeClassifier, ArgminTreeRegressor):
        for value in BAD[name]:
            options = nested({name: value})
            owner = kind.__name__ if name in options else "TrainingOptions"
            with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of {owner} must be"):
                kind().set_params(**options).fit(X, Y)


def test_an_option_of_training_is_shown_the_way() -> None:
    said = r"has no option 'batch_size'. Use training=TrainingOptions\(batch_size=...\)"
    with pytest.raises(InputTypeError, match=said):
        ArgminTreeClassifier(batch_size=32)  # type: ignore[call-arg]
    with pytest.raises(InputValueError, match=said):
        ArgminTreeClassifier().set_params(batch_size=32)
    with pytest.raises(InputValueError, match="training has no option 'depth'"):
        ArgminTreeClassifier().set_params(training__depth=3)


SIZES = "hidden_layer_sizes must be integers from 1 to 65_536, got"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        *(({name: True}, InputTypeError, f"{name} must be an int") for name in ("depth", "max_epochs")),
        *(({"device": device}, InputValueError, f"device.*{device}") for device in ("gpu", "cuda:99")),
        *(({name: 10**400}, InputValueError, f"{name} must be finite") for name in ("learning_rate", "weight_decay")),
        *(({"leaf": "mlp", "hidden_layer_sizes": sizes}, InputValueError, SIZES)
          for sizes in ((0,), (2.5,), ("4",), (True,), (10**12,), np.array(4))),
        ({"n_jobs": 0}, InputValueError, "n_jobs must be None or an int other than 0, got n_jobs=0"),
        ({"checkpoint": "a\0b"}, InputValueError, "no null character"),
        ({"loss": "cross_entropy"}, InvalidParameterError, "The 'loss' parameter"),
        ({"split": "sparse"}, ValueError, r"must be a str among .*'sparse_mlp'.* Got 'sparse' instead"),
        ({"split": lambda _, depth: depth}, InputTypeError,
         r"split\(n_inputs, depth\) must return a torch.nn.Module, got int"),
        ({"split": lambda features, _: nn.Linear(features, 5)}, InputValueError,
         r"scores of shape \(n, 3\), got \(60, 5\) from Linear"),
        ({"loss": lambda output, target: squared(output, target) * float("nan")}, TrainingError,
         "the training loss became nan in epoch 1"),
        ({"loss": lambda output, _: output.detach()}, InputValueError, "without gradients"),
        ({"loss": lambda output, _: 1j * output}, InputTypeError, "real floating point numbers"),
        ({"optimizer": lambda *_, **__: 7}, InputTypeError, r"must return a torch.optim.Optimizer, got 7"),
        ({"callbacks": [lambda _: np.array([1, 2])]}, InputTypeError, "a callback must return True, False or None"),
        *(({"leaf": "additive", "max_epochs": 1, name: 1e308}, TrainingError, r"training has diverged|loss became")
          for name in ("learning_rate", "weight_decay")),
        ({"split": "sparse_mlp", "learning_rate": 1e308}, TrainingError, r"training has diverged|loss became"),
    ],
)  # fmt: skip
def test_other_options_that_cannot_be_used(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        regressor(**options).fit(X, V)


def test_options_are_checked_by_fits_only() -> None:
    assert ArgminTreeRegressor(depth=-1).depth == -1
    with pytest.raises(TypeError, match="positional"):
        ArgminTreeRegressor(3)  # type: ignore[call-arg]
    tree = regressor().partial_fit(X, V).set_params(pruning_strength=[1])
    with pytest.raises(ValueError, match="'pruning_strength' parameter"):
        tree.partial_fit(X, V)
    wrong: list[tuple[str, Any]] = [("loss", "squared_error"), ("loss", "huber"), ("class_weight", "balance")]
    for name, value in [*wrong, ("class_weight", [1.0, 2.0]), ("class_weight", 3)]:
        with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter"):
            classifier(**{name: value}).fit(X, Y)
    with pytest.raises(InputValueError, match="reduction='none'"):
        regressor(loss=mean).fit(X, V, sample_weight=np.linspace(1, 2, len(X)))
