"""Models that were fitted once, for all tests of the command line."""

from pathlib import Path

import pytest

import prunus
from prunus.cli import main
from prunus.nn import ConstantHead, LinearSplit, TreeLayer, TreeModel
from tests.cli.tables import QUICK, SOFT, Shell, csv


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With table.csv, and soft trees and others that were learned from it, all with columns "size" and "color".

    They are kind.prunus (a classifier), price.prunus (a regressor), clusters.prunus, readable.prunus (a regressor),
    forest.prunus (a classifier of two trees), and module.prunus, which is no estimator.
    """
    made = tmp_path_factory.mktemp("cli")
    data = csv(made / "table.csv")
    of_forest = ["--forest", "2", "--leaf", "constant", "--pieces", "0", "--depth", "2", *QUICK]
    fits = {"kind": ("kind", SOFT), "price": ("price", SOFT), "readable": ("price", ["--quiet"])}
    for name, (target, options) in (fits | {"forest": ("kind", of_forest)}).items():
        columns = ["--target", target, "--drop", "price" if target == "kind" else "kind"]
        assert main(["fit", data, *columns, "--out", str(made / f"{name}.prunus"), *options]) == 0
    assert main(["cluster", data, "--drop", "kind", "--out", str(made / "clusters.prunus"), *QUICK]) == 0
    module = TreeModel(TreeLayer(LinearSplit(2, depth=1), depth=1), ConstantHead(2, depth=1, out_features=1))
    prunus.save(module, made / "module.prunus")
    return made
