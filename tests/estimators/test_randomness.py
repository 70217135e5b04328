"""The same seed gives the same bits, and nothing outside is touched."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from sklearn.base import clone

from prunus.fitting.building import build_model, start_model
from prunus.training import Samples
from tests.estimators.problems import KINDS, classifier, labels, regressor, table, values

X, Y = table(), labels(table())


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_the_same_seed_gives_the_same_bits(split: str, leaf: str) -> None:
    options: dict[str, Any] = {"split": split, "leaf": leaf, "batch_size": 16}
    first, second = (regressor(**options).fit(X, values(X)) for _ in range(2))
    assert_array_equal(first.predict(X), second.predict(X))
    assert_array_equal(first.predict(X, hard=True), second.predict(X, hard=True))


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_another_seed_gives_another_tree(split: str, leaf: str) -> None:
    first, second = (regressor(split=split, leaf=leaf, random_state=seed).fit(X, values(X)) for seed in (0, 1))
    assert (first.predict(X) != second.predict(X)).any()


def test_no_seed_gives_another_tree_each_time() -> None:
    first, second = (regressor(random_state=None).fit(X, values(X)).predict(X) for _ in range(2))
    assert (first != second).any()


def test_a_generator_gives_another_tree_each_time() -> None:
    random = np.random.RandomState(0)
    first, second = (regressor(random_state=random).fit(X, values(X)).predict(X) for _ in range(2))
    assert (first != second).any()
    assert_array_equal(regressor(random_state=np.random.RandomState(0)).fit(X, values(X)).predict(X), first)


def test_other_generators_do_not_matter() -> None:
    results: list[Any] = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        results.append(regressor(split="mlp", leaf="mlp", batch_size=16).fit(X, values(X)).predict(X))
    assert_array_equal(*results)


@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_other_generators_are_left_alone(split: str, leaf: str) -> None:
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    expected = torch.rand(3), np.random.rand(3)  # noqa: NPY002
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    tree = classifier(split=split, leaf=leaf, early_stopping_rounds=3, batch_size=16).fit(X, Y)
    tree.predict(X)
    tree.predict(X, hard=True)
    tree.partial_fit(X, Y)
    assert torch.equal(torch.rand(3), expected[0])
    assert_array_equal(np.random.rand(3), expected[1])  # noqa: NPY002


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_threads_is_left_alone(threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        classifier().fit(X, Y).predict(X)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_the_number_of_threads_is_left_alone_by_a_fit_that_fails() -> None:
    def fail(_record: Any) -> None:
        raise LookupError

    before = torch.get_num_threads()
    with pytest.raises(LookupError):
        classifier(callbacks=[fail]).fit(X, Y)
    assert torch.get_num_threads() == before


def in_double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def on_another_device() -> Iterator[None]:
    torch.set_default_device("meta")
    yield
    torch.set_default_device(None)


@pytest.mark.parametrize(
    "surroundings",
    [torch.no_grad, torch.inference_mode, contextmanager(in_double), contextmanager(on_another_device)],
    ids=["no_grad", "inference_mode", "double", "device"],
)
@pytest.mark.parametrize(("split", "leaf"), [("linear", "constant"), ("mlp", "mlp")])
def test_defaults_of_torch_do_not_matter(surroundings: Any, split: str, leaf: str) -> None:
    plain = regressor(split=split, leaf=leaf).fit(X, values(X))
    expected = plain.predict(X), plain.predict(X, hard=True)
    with surroundings():
        results = [(tree.predict(X), tree.predict(X, hard=True)) for tree in (plain, clone(plain).fit(X, values(X)))]
    assert_array_equal(results, [expected, expected])


def test_defaults_of_torch_are_left_alone() -> None:
    with contextmanager(in_double)(), torch.no_grad():
        regressor().fit(X, values(X)).predict(X)
        assert not torch.is_grad_enabled()
        assert torch.get_default_dtype() == torch.float64


def test_the_number_of_threads_does_not_matter() -> None:
    before = torch.get_num_threads()
    results: list[Any] = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(regressor(leaf="linear").fit(X, values(X)).predict(table(5000)))
    finally:
        torch.set_num_threads(before)
    assert_array_equal(*results)


def test_predictions_in_several_threads() -> None:
    tree = regressor(leaf="linear").fit(X, values(X))
    expected = tree.predict(X)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: tree.predict(X), range(8)):
            assert_array_equal(result, expected)


def own_split(features: int, depth: int) -> torch.nn.Module:
    hidden = torch.nn.Sequential(torch.nn.Linear(features, 6), torch.nn.Dropout(0.2))
    return torch.nn.Sequential(hidden, torch.nn.Linear(6, 2**depth - 1))


@pytest.mark.parametrize("split", ["mlp", own_split], ids=["mlp", "own"])
def test_fits_in_several_threads_are_those_of_one_thread(split: Any) -> None:
    options: dict[str, Any] = {"split": split, "leaf": "mlp", "dropout": 0.2, "batch_size": 16, "max_epochs": 4}

    def fit(seed: int) -> Any:
        return regressor(**options, random_state=seed).fit(X, values(X)).predict(X)

    expected = [fit(seed) for seed in range(20)]
    random = torch.get_rng_state()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(fit, range(20)))
    assert_array_equal(found, expected)  # broke: threads drew from one generator and reset it for each other
    assert torch.equal(random, torch.get_rng_state())


def test_tables_and_targets_are_left_alone() -> None:
    x, y, weight = X.copy(), values(X), np.linspace(0, 2, len(X))
    for array in (x, y, weight):
        array.flags.writeable = False
    regressor(early_stopping_rounds=2).fit(x, y, sample_weight=weight)
    assert_array_equal(x, X)
    assert_array_equal(y, values(X))


def test_the_root_of_a_soft_tree_starts_alike_for_all_seeds() -> None:
    x = torch.randn(500, 4, generator=torch.Generator().manual_seed(0))
    train = Samples(x, (x[:, 1:2] - x[:, 3:]).abs())
    options: dict[str, Any] = {"depth": 2, "pruning_strength": 1.0, "batch_size": 64, "split": "linear"}

    def root(seed: int, *, bends: bool) -> Any:
        model: Any = build_model(4, 1, leaf="linear", **options)
        start_model(model, train, torch.Generator().manual_seed(seed), bends_at_root=bends)
        weight = model.tree.split.scores.weight[0].detach()
        return weight / weight.norm()

    assert root(1, bends=True) @ root(2, bends=True) > 0.99
    assert abs(root(1, bends=False) @ root(2, bends=False)) < 0.99
