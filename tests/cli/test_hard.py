"""Trees whose rows follow one path, on the command line."""

from pathlib import Path

import optuna
import pytest

import prunus
from prunus.cli.study import suggest
from tests.cli.tables import QUICK, Shell, csv, frame

HARD = ("--kind", "hard", *QUICK)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With table.csv, and a hard classifier in kind.prunus."""
    made = tmp_path_factory.mktemp("hard")
    data, out = csv(made / "table.csv"), str(made / "kind.prunus")
    options = ("--max-split-features", "1", "--max-leaf-nodes", "3", "--depth", "2")
    from prunus.cli import main

    assert main(["fit", data, "--target", "kind", "--drop", "price", "--out", out, *options, *HARD]) == 0
    return made


def test_options_reach_the_estimator(folder: Path) -> None:
    tree = prunus.load(folder / "kind.prunus")
    assert (tree.routing, tree.max_split_features, tree.max_leaf_nodes) == ("hard", 1, 3)
    assert tree.tree_.is_hard
    assert tree.get_n_leaves() <= 3


def test_a_hard_tree_has_one_set_of_scores(shell: Shell, folder: Path) -> None:
    record = shell.json("evaluate", folder / "kind.prunus", folder / "table.csv")
    assert {"accuracy", "balanced_accuracy", "log_loss", "roc_auc"} < set(record)
    assert not [name for name in record if "hard" in name or "agreement" in name]


def test_fit_tells_that_rows_follow_one_path(shell: Shell, tmp_path: Path) -> None:
    said = shell("fit", csv(tmp_path / "t.csv"), "--target", "price", "--out", tmp_path / "t.prunus", *HARD)
    assert "rows follow one path" in said
    assert "hard" not in said.replace(str(tmp_path), "")


def test_hard_predictions_of_a_hard_tree_are_its_predictions(shell: Shell, folder: Path) -> None:
    command = ("predict", folder / "kind.prunus", folder / "table.csv", "--proba")
    assert shell(*command, "--hard") == shell(*command)


def test_an_exported_hard_tree_is_hard(shell: Shell, folder: Path, tmp_path: Path) -> None:
    assert shell.json("export", folder / "kind.prunus", "--onnx", tmp_path / "t.onnx")["hard"] is True


def test_clusters_follow_one_path(shell: Shell, tmp_path: Path) -> None:
    out = tmp_path / "t.prunus"
    record = shell.json(
        "cluster", csv(tmp_path / "t.csv"), "--out", out, "--max-leaf-nodes", 3, "--routing", "hard", *QUICK
    )
    assert set(record["scores"]) == {"reconstruction_error"}
    assert prunus.load(out).tree_.is_hard
    assert record["model"]["leaves"] <= 3


def test_both_checkpoints_are_removed_after_the_model_was_saved(shell: Shell, tmp_path: Path) -> None:
    command = ("fit", csv(tmp_path / "t.csv", frame(400)), "--target", "price", "--out", tmp_path / "t.prunus", *HARD)
    shell(*command, "--depth", 1)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["t.csv", "t.prunus"]


def test_a_training_that_ended_is_not_lost_with_its_model(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "t.prunus")

    command = ("fit", csv(tmp_path / "t.csv"), "--target", "price", "--out", tmp_path / "t.prunus", *HARD)
    with monkeypatch.context() as patch:
        patch.setattr("prunus.io.save", full)
        assert "the state of training is in" in shell.mistake(*command)
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["t.csv", "t.prunus.checkpoint", "t.prunus.checkpoint.hard"]
    shell(*command, "--resume")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["t.csv", "t.prunus"]


def test_force_discards_both_checkpoints(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "t.prunus.checkpoint.hard").write_text("state")
    command = ("fit", csv(tmp_path / "t.csv"), "--target", "price", "--out", tmp_path / "t.prunus", *HARD)
    assert "t.prunus.checkpoint.hard belongs to a run that was interrupted" in shell.mistake(*command)
    shell(*command, "--force")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["t.csv", "t.prunus"]


def test_the_second_checkpoint_never_replaces_the_table(shell: Shell, tmp_path: Path) -> None:
    data = csv(tmp_path / "t.prunus.checkpoint.hard")
    said = shell.mistake("fit", data, "--target", "price", "--out", tmp_path / "t.prunus", *HARD, "--force")
    assert "must be another one than" in said


def test_a_search_for_hard_trees_tries_only_what_they_can_have() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = [suggest(study.ask(), "all", {"routing": "hard"}) for _ in range(20)]
    assert {options["leaf"] for options in drawn} == {"constant", "linear", "additive"}
    assert {options["split"] for options in drawn} == {"linear"}


def test_a_search_with_few_columns_in_splits_tries_linear_ones() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    assert {suggest(study.ask(), "all", {"max_split_features": 2})["split"] for _ in range(20)} == {"linear"}


def test_leaves_of_few_columns(shell: Shell, tmp_path: Path) -> None:
    command = ("fit", csv(tmp_path / "t.csv"), "--target", "price", "--out", tmp_path / "t.prunus")
    words = ("--max-leaf-features", 1)
    shell(*command, *HARD, "--leaf", "linear", *words)
    assert prunus.load(tmp_path / "t.prunus").max_leaf_features == 1
    said = shell.mistake(*command, "--force", *HARD, "--leaf", "constant", *words)
    assert "max_leaf_features must be None unless leaf is 'linear'" in said
    said = shell.mistake(*command, "--force", "--kind", "soft", *QUICK, "--leaf", "linear", *words)
    assert "max_leaf_features must be None unless routing is 'hard'" in said


def test_a_search_with_few_columns_in_leaves_tries_linear_ones_without_pieces() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = [suggest(study.ask(), "all", {"routing": "hard", "max_leaf_features": 2}) for _ in range(20)]
    assert {(options["leaf"], options["pieces"]) for options in drawn} == {("linear", 0)}


def test_a_hard_tree_is_searched(shell: Shell, tmp_path: Path) -> None:
    command = ("tune", csv(tmp_path / "t.csv"), "--target", "kind", "--out", tmp_path / "t.prunus", "--trials", 1)
    record = shell.json(*command, "--max-leaf-nodes", 4, *HARD)
    assert record["model"]["routing"] == "hard"
    assert prunus.load(tmp_path / "t.prunus").max_leaf_nodes == 4


def test_the_space_of_the_paper_has_no_hard_trees(shell: Shell, tmp_path: Path) -> None:
    command = ("tune", csv(tmp_path / "t.csv"), "--target", "kind", "--out", tmp_path / "t.prunus", *HARD)
    assert "--leaf must be given for --space paper" in shell.mistake(*command, "--space", "paper")
