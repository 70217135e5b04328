"""Files that were tampered with are refused by one error of ours, or predict without harm."""

import resource
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import prunus
from prunus.errors import ModelFileError, PrunusError
from tests.estimators.problems import as_pandas, classifier, labels, mixed, regressor, table, values
from tests.fuzz.model_files import read, with_other_header, with_other_tensor, write

X = table(40)
FRAME = as_pandas(mixed())


def models() -> list[tuple[Any, Any]]:
    """Small fitted estimators of all kinds, each with a table to predict."""
    network = {"leaf": "mlp", "hidden_layer_sizes": (4,)}
    cluster = prunus.ArgminTreeClusterer(depth=2, max_epochs=2, random_state=0, n_clusters=3)
    return [
        (classifier().fit(FRAME, labels(X, "abc")), FRAME),
        (classifier(leaf="linear", split="elu").fit(X, labels(X)), X),
        (regressor(leaf="additive", pieces=4).fit(X, values(X)), X),
        (regressor(leaf="linear", pieces=4).fit(X, values(X)), X),
        (regressor(**network, split="mlp").fit(X, np.column_stack((values(X), X[:, 0]))), X),
        (cluster.fit(X), X),
    ]


def attack(path: Path, seed: int, source: Any, rows: Any) -> str:
    """Change something, load the file, and predict if it loads."""
    random = np.random.default_rng(seed)
    header, tensors = source
    for _ in range(random.integers(1, 3)):
        if random.random() < 0.5:
            header = with_other_header(header, random)
        else:
            tensors = with_other_tensor(tensors, random)
    write(path, header, tensors)
    try:
        model = prunus.load(path)
    except ModelFileError:
        return "refused"
    try:
        assert len(model.predict(rows)) == len(rows)
        assert len(model.apply(rows)) == len(rows)
    except PrunusError:  # the table is not the one that the encoder now describes
        return "refused"
    return "loaded"


def fuzz(folder: Path, cases: int) -> dict[str, int]:
    counts = {"refused": 0, "loaded": 0}
    sources = []
    for i, (model, rows) in enumerate(models()):
        prunus.save(model, folder / f"{i}.prunus")
        sources.append((read(folder / f"{i}.prunus"), rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers that were changed
        for seed in range(cases):
            source, rows = sources[seed % len(sources)]
            counts[attack(folder / "crafted.prunus", seed, source, rows)] += 1
    return counts


def test_some_crafted_files_do_no_harm(tmp_path: Path) -> None:
    counts = fuzz(tmp_path, 400)
    assert counts["refused"] > 250


@pytest.mark.slow
def test_crafted_files_do_no_harm(tmp_path: Path) -> None:
    counts = fuzz(tmp_path, 10_000)
    assert sum(counts.values()) == 10_000


@pytest.mark.parametrize("seed", range(3))
def test_every_flipped_bit_is_noticed(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    path = tmp_path / "tree.prunus"
    prunus.save(classifier(leaf=("constant", "linear", "additive")[seed]).fit(X, labels(X)), path)
    content = path.read_bytes()
    for position in random.choice(len(content), 130, replace=False):
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(random.integers(8))
        path.write_bytes(bytes(damaged))
        with pytest.raises(ModelFileError):
            prunus.load(path)


@pytest.fixture
def saved(tmp_path: Path) -> Any:
    """Header and tensors of a classifier."""
    prunus.save(classifier().fit(FRAME, labels(X, "abc")), tmp_path / "classifier.prunus")
    return read(tmp_path / "classifier.prunus")


def test_a_head_of_another_depth_than_its_tree_is_refused(tmp_path: Path, saved: Any) -> None:
    """It made `predict_proba` return what lay beyond the array."""
    header, tensors = saved
    header["model"]["head"]["depth"] = 0
    tensors["model.head.weight"] = tensors["model.head.weight"][:, :1].clone()
    with pytest.raises(ModelFileError, match="same sizes"):
        prunus.load(write(tmp_path / "crafted.prunus", header, tensors))


@pytest.mark.parametrize(
    ("place", "claim"),
    [
        (("model", "head", "out_features"), 60_000_000),
        (("model", "split", "in_features"), 10**12),
        (("target", "labels", "dtype"), "S2000000000"),
        (("target", "labels", "dtype"), "<U500000000"),
        (("encoder", "n_features_in"), 10**12),
    ],
    ids=str,
)
def test_a_header_cannot_ask_for_more_memory_than_the_file_has(
    place: Any, claim: Any, tmp_path: Path, saved: Any
) -> None:
    header, tensors = saved
    owner = header
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = claim
    path = write(tmp_path / "crafted.prunus", header, tensors)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelFileError, match="is damaged"):
        prunus.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # in kB


def test_a_header_of_lists_within_lists_is_refused(tmp_path: Path) -> None:
    path, text = tmp_path / "deep.prunus", "[" * 200_000 + "]" * 200_000
    save_file({"a": torch.zeros(1)}, path, metadata={"prunus": text})
    with pytest.raises(ModelFileError):
        prunus.load(path)
