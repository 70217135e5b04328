"""Networks with sparse weights as splits learn combinations of a few features from few rows: who has three in a row."""

from itertools import product

import numpy as np
import numpy.typing as npt
import torch
from sklearn.model_selection import train_test_split

from prunus import ArgminTreeClassifier
from prunus.nn import SparseMLPSplit

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def endgames() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Final boards of tic-tac-toe, one-hot, and whether x, who begins, has won."""
    boards, wins = [], []
    for board in product("xo ", repeat=9):
        x_wins, o_wins = (any(all(board[at] == who for at in line) for line in LINES) for who in "xo")
        lead = board.count("x") - board.count("o")
        is_final = lead == 1 if x_wins else lead == 0 if o_wins else " " not in board and lead == 1
        if is_final and not (x_wins and o_wins):
            boards.append([square == mark for square in board for mark in "xo "])
            wins.append(x_wins)
    return np.array(boards, np.float32), np.array(wins, np.int64)


def test_tic_tac_toe_is_learned_from_a_part_of_its_endgames() -> None:
    x, y = endgames()
    assert len(x) == 958
    x, x_new, y, y_new = train_test_split(x, y, test_size=0.3, random_state=0, stratify=y)
    tree = ArgminTreeClassifier(split="sparse_mlp", random_state=0).fit(x, y)
    assert tree.score(x_new, y_new) >= 0.99
    assert ArgminTreeClassifier(random_state=0).fit(x, y).score(x_new, y_new) < 0.99


def test_sparsity_makes_weights_vanish() -> None:
    x, y = endgames()

    def vanished(sparsity: float) -> float:
        with torch.random.fork_rng([]):
            torch.default_generator.manual_seed(0)
            split = SparseMLPSplit(x.shape[1], 2, sparsity=sparsity)
        ArgminTreeClassifier(split=lambda _features, _depth: split, depth=2, max_epochs=30, random_state=0).fit(x, y)
        return float((split.sums.weight.abs() < 1e-3).float().mean())

    assert vanished(0.0) < 0.05 < 0.2 < vanished(0.1)
