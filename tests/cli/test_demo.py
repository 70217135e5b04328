"""``prunus demo``: the table that comes along, and the comparison."""

from pathlib import Path

import pytest

from prunus import ArgminTreeClassifier
from prunus.cli import demo
from tests.cli.tables import Shell


def test_the_table_comes_along() -> None:
    X, y = demo.read_glass()  # noqa: N806
    assert list(X.columns) == ["RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe"]
    assert len(set(y)) == 6
    assert len(X) == 214


def test_trees_are_compared_and_a_page_is_written(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "FOLDS", 2)
    quick = {"prunus, the paper's": lambda: ArgminTreeClassifier(max_epochs=2, random_state=0)}
    monkeypatch.setattr(demo, "CLASSIFIERS", quick | {"CART": demo.CLASSIFIERS["scikit-learn, as small"]})
    said = shell("demo", "--html", tmp_path / "tree.html")
    beginning, trees = said.split("Accuracy on held-out rows", 1)[0].split("A tree of prunus with at most 8 leaves", 1)
    assert beginning.startswith("Glass: 214 samples of 6 types")
    own, cart = trees.split("A tree of scikit-learn with 8 leaves")
    assert 2 <= own.count("class: ") <= cart.count("class: ") == 8
    for text in ("prunus, the paper's", "CART", "accuracy", "purity", "tree.html: open it in a browser"):
        assert text in said
    assert "<html" in (tmp_path / "tree.html").read_text(encoding="utf-8")
    assert "exists; add --force" in shell.mistake("demo", "--html", tmp_path / "tree.html", "--quiet")
