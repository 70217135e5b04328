"""Losses on the command line."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import prunus
from tests.cli.tables import Shell, csv, frame


@pytest.fixture
def data(tmp_path: Path) -> str:
    """A table with prices that are positive, and counts."""
    table = frame(200)
    random = np.random.default_rng(0)
    table["price"] = np.exp(table["price"]) * random.lognormal(size=200)
    return csv(tmp_path / "table.csv", table.assign(count=random.poisson(1.0 + (table["size"] > 0))))


QUICK = ("--max-epochs", 20, "--quiet")
SOFT = ("--kind", "soft", *QUICK)


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_a_quantile_is_learned(shell: Shell, data: str, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "tree.prunus"
    options = ("--loss", "quantile", "--quantile", 0.9, "--kind", kind, "--drop", "kind", "--drop", "count")
    shell("fit", data, "--target", "price", "--out", out, *options, *QUICK)
    tree = prunus.load(out)
    assert (tree.loss, tree.quantile) == ("quantile", 0.9)
    found = shell.json("evaluate", out, data)
    assert found["coverage"] == pytest.approx(0.9, abs=0.06)
    assert found["d2"] > 0


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("count", ["--loss", "poisson"]),
        ("price", ["--loss", "gamma"]),
        ("price", ["--loss", "tweedie", "--tweedie-power", 1.7]),
    ],
    ids=["poisson", "gamma", "tweedie"],
)
def test_log_losses_are_learned(shell: Shell, data: str, tmp_path: Path, target: str, options: list[str]) -> None:
    out = tmp_path / "tree.prunus"
    drop = [word for name in {"count", "price", "kind"} - {target} for word in ("--drop", name)]
    record = shell.json("fit", data, "--target", target, "--task", "regression", "--out", out, *drop, *options, *SOFT)
    assert record["task"] == "regression"
    assert shell.json("evaluate", out, data)["d2"] > 0.05
    shell("predict", out, data, "--out", tmp_path / "out.csv")
    assert (pd.read_csv(tmp_path / "out.csv")["prediction"] > 0).all()


def test_one_logit_is_learned_shown_and_exported(shell: Shell, data: str, tmp_path: Path) -> None:
    out = tmp_path / "tree.prunus"
    shell("fit", data, "--target", "kind", "--loss", "binary_cross_entropy", "--out", out, *SOFT)
    assert "class: large" in shell("show", out)
    assert shell.json("evaluate", out, data)["roc_auc"] > 0.9
    shell("predict", out, data, "--proba", "--out", tmp_path / "out.csv")
    found = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(found["probability large"] + found["probability small"], 1.0)
    shell("export", out, "--onnx", tmp_path / "tree.onnx")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--loss", "huber", "--quantile", 0.9],
            "--quantile must be left out unless the loss is quantile, got it with --loss huber",
        ),
        (["--quantile", 0.9], "--quantile must be left out unless the loss is quantile, got it without --loss"),
        (
            ["--tweedie-power", 1.2],
            "--tweedie-power must be left out unless the loss is tweedie, got it without --loss",
        ),
        (["--loss", "quantile", "--quantile", 1.5], "--quantile must be between 0 and 1, got 1.5"),
        (["--loss", "tweedie", "--tweedie-power", "nan"], "--tweedie-power must be between 1 and 2, got nan"),
        (
            ["--loss", "cross_entropy"],
            "--loss must be one of squared_error, absolute_error, huber, quantile, poisson, gamma, tweedie for a "
            "target of numbers, got cross_entropy; choose one of them, or add --task classification",
        ),
    ],
)
@pytest.mark.parametrize("command", ["fit", "tune"])
def test_wrong_combinations_are_met_by_one_line(
    shell: Shell, data: str, tmp_path: Path, command: str, options: list[str], said: str
) -> None:
    line = shell.mistake(
        command, data, "--target", "price", "--kind", "soft", "--out", tmp_path / "tree.prunus", *options
    )
    assert line == f"prunus {command}: {said}"


def test_the_loss_of_numbers_for_classes(shell: Shell, data: str, tmp_path: Path) -> None:
    line = shell.mistake("fit", data, "--target", "count", "--loss", "poisson", "--out", tmp_path / "t.prunus", *SOFT)
    assert "for a target of classes, got poisson; choose one of them, or add --task regression" in line


def test_negative_targets_of_a_log_loss(shell: Shell, data: str, tmp_path: Path) -> None:
    line = shell.mistake("fit", data, "--target", "size", "--loss", "gamma", "--out", tmp_path / "t.prunus", *SOFT)
    assert "y must be positive with loss='gamma', got -" in line
