"""A tree in DOT, read by Graphviz itself where it is installed."""

import re
import shutil
import subprocess
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from prunus import ArgminTreeClusterer, export_graphviz, tree_summary
from prunus.errors import InputTypeError
from tests.estimators.problems import KINDS, as_pandas, classifier, labels, mixed, regressor, table, values

X = table()
NASTY = 'a"b<c>\n& \\N \\"{|} &lt; $x$ é'
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


def dot(tree: Any, **options: Any) -> str:
    text = export_graphviz(tree, **options)
    assert text is not None
    return text


def drawn(text: str) -> str:
    """The picture as SVG; Graphviz has nothing to complain about."""
    run = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr
    assert "syntax" not in run.stderr
    return run.stdout


def nasty_tree() -> Any:
    return classifier(depth=1).fit(pd.DataFrame({NASTY: X[:, 0], "other": X[:, 1]}), labels(X, [NASTY, "b"]))


@needs_dot
@pytest.mark.parametrize("special_characters", [False, True])
def test_names_are_drawn_as_they_are(special_characters: bool) -> None:
    svg = drawn(dot(nasty_tree(), special_characters=special_characters))
    text = unescape(re.sub(r"</text>\n<text[^>]*>", "", svg)).replace("\N{NO-BREAK SPACE}", " ")
    assert 'a"b<c> & \\N \\"{|} &lt; $x$ é' in text


@needs_dot
@pytest.mark.parametrize("name", ["\\", '"', "\\n", "<", ">", "&", "<b>", "]; evil [", "--", "//", "\n", ""])
def test_no_name_breaks_it(name: str) -> None:
    tree = regressor(depth=1).fit(X, values(X))
    for special_characters in (False, True):
        drawn(dot(tree, feature_names=[name, "b", "c"], special_characters=special_characters, fontname=name or "x"))


@needs_dot
@pytest.mark.parametrize(
    "options",
    [
        {"filled": True, "rounded": True},
        {"leaves_parallel": True, "rotate": True},
        {"node_ids": True, "proportion": True, "label": "none", "impurity": False},
        {"max_depth": 1, "label": "root", "precision": 0},
    ],
)
def test_all_options_are_drawn(options: dict[str, Any]) -> None:
    frame = as_pandas(mixed())
    drawn(dot(classifier(depth=3).fit(frame, frame["member"]), **options))
    drawn(dot(regressor(depth=3, pieces=8).fit(frame, frame["count"]), **options))
    drawn(dot(ArgminTreeClusterer(depth=3, random_state=0).fit(frame), **options))


@needs_dot
@pytest.mark.parametrize(("split", "leaf"), KINDS)
def test_all_kinds_of_trees(split: str, leaf: str) -> None:
    drawn(dot(regressor(split=split, leaf=leaf).fit(X, np.stack([values(X)] * 6, 1))))


@needs_dot
def test_a_tree_of_one_node() -> None:
    assert drawn(dot(classifier(depth=0).fit(X, labels(X)), leaves_parallel=True)).count("<g id=") == 2


def test_every_kept_node_is_there() -> None:
    tree = regressor(depth=4, pruning_strength=4.0).fit(X, values(X))
    summary, text = tree_summary(tree), dot(tree)
    for node in summary.nodes:
        assert f"\n{node.node} [label=" in text
    pruned = sum(node.n_pruned for node in summary.nodes if not node.is_leaf)
    assert pruned > 0
    assert text.count('label="\N{EN DASH}"') == pruned
    assert text.count(" -> ") == len(summary.nodes) - 1 + pruned
    assert "fillcolor" not in text
    assert dot(tree, filled=True).count("fillcolor") == len(summary.nodes)
    assert 'label="(...)"' in dot(tree, max_depth=1)


@pytest.mark.parametrize("path", [str, Path])
def test_it_is_written_to_a_path(path: Any, tmp_path: Path) -> None:
    tree = nasty_tree()
    assert export_graphviz(tree, path(tmp_path / "tree.dot")) is None
    assert (tmp_path / "tree.dot").read_text(encoding="utf-8") == dot(tree)


def test_it_is_written_to_a_file() -> None:
    tree, file = nasty_tree(), StringIO()
    assert export_graphviz(tree, file) is None
    assert file.getvalue() == dot(tree)


def test_a_file_that_is_none() -> None:
    with pytest.raises(InputTypeError, match="out_file must be a path, an open file or None, got int"):
        export_graphviz(nasty_tree(), 3)
