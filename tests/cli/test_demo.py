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
    quick = {"prunus, one path": lambda: ArgminTreeClassifier(max_epochs=2, random_state=0)}
    monkeypatch.setattr(demo, "CLASSIFIERS", quick | {"scikit-learn": demo.CLASSIFIERS["scikit-learn"]})
    said = shell("demo", "--html", tmp_path / "tree.html")
    for text in ("prunus", "scikit-learn", "accuracy", "purity", "tree.html: open it in a browser"):
        assert text in said
    assert "<html" in (tmp_path / "tree.html").read_text(encoding="utf-8")
    assert "exists; add --force" in shell.mistake("demo", "--html", tmp_path / "tree.html", "--quiet")
