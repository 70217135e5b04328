"""Files are written completely or not at all, and pipes and links stay what they are."""

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import prunus
from prunus.files import replacing, write_bytes
from prunus.training.checkpoints import write_checkpoint

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes, links and limits of POSIX")

WRITERS: dict[str, Callable[[prunus.ArgminTreeRegressor, Path], object]] = {
    "save": prunus.save,
    "export_html": prunus.export_html,
    "export_onnx": prunus.export_onnx,
    "export_graphviz": prunus.export_graphviz,
    "checkpoint": lambda tree, path: write_checkpoint(path, {"weights": tree.model_.state_dict()}),
}


@pytest.fixture(scope="module")
def tree() -> prunus.ArgminTreeRegressor:
    tree = prunus.ArgminTreeRegressor(depth=1, max_epochs=1, random_state=0)
    tree.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    return tree


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.usefixtures("umask")
def test_permissions_follow_the_umask(writer: str, tree: prunus.ArgminTreeRegressor, tmp_path: Path) -> None:
    WRITERS[writer](tree, tmp_path / "t")
    assert stat.S_IMODE((tmp_path / "t").stat().st_mode) == 0o640
    assert names(tmp_path) == ["t"]


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "t").touch(mode=0o600)
    write_bytes(tmp_path / "t", b"new")
    assert stat.S_IMODE((tmp_path / "t").stat().st_mode) == 0o600


@pytest.mark.parametrize("writer", WRITERS)
def test_a_link_stays_and_its_file_is_written(writer: str, tree: prunus.ArgminTreeRegressor, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "t")
    for _ in range(2):  # the link dangles at first
        WRITERS[writer](tree, tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "folder" / "t").stat().st_size > 0
    assert names(tmp_path / "folder") == ["t"]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_pipe_is_written_to(writer: str, tree: prunus.ArgminTreeRegressor, tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    WRITERS[writer](tree, pipe)
    reader.join(timeout=30)
    WRITERS[writer](tree, tmp_path / "t")
    assert len(got[0]) == (tmp_path / "t").stat().st_size
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_an_error_leaves_the_old_file_alone(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("old")

    def interrupted() -> None:
        with replacing(tmp_path / "t") as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == ["t"]
    assert (tmp_path / "t").read_text() == "old"


FULL_DISK = """
import contextlib, io, json, resource, sys
import matplotlib, matplotlib.pyplot, pandas, pyarrow.feather, pyarrow.parquet, onnx  # which may write caches
from prunus.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
found = []
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        found.append([main(command), said.getvalue()])
print(json.dumps(found))
"""
COMMANDS = {
    "p.csv": ["predict", "m.prunus", "t.csv", "--out"],
    "p.csv.gz": ["predict", "m.prunus", "t.csv", "--out"],
    "p.parquet": ["predict", "m.prunus", "t.csv", "--out"],
    "p.feather": ["predict", "m.prunus", "t.csv", "--out"],
    "p.html": ["show", "m.prunus", "--html"],
    "p.png": ["show", "m.prunus", "--plot"],
    "p.pdf": ["show", "m.prunus", "--plot"],
    "p.onnx": ["export", "m.prunus", "--onnx"],
    "p.prunus": ["cluster", "t.csv", "--max-epochs", "1", "--quiet", "--out"],
}


def test_a_full_disk_leaves_the_old_files(tree: prunus.ArgminTreeRegressor, tmp_path: Path) -> None:
    prunus.save(tree, tmp_path / "m.prunus")
    (tmp_path / "t.csv").write_text("x\n" + "".join(f"{i / 7}\n" for i in range(200)))
    (tmp_path / "out").mkdir()
    for name in COMMANDS:
        (tmp_path / "out" / name).write_text("old")
    commands = [[*command, f"out/{name}", "--force"] for name, command in COMMANDS.items()]
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, json.dumps(commands)],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
        cwd=tmp_path,
    )
    for name, (code, said) in zip(COMMANDS, json.loads(done.stdout), strict=True):
        assert (code, said.count("\n")) == (1, 1), said
        assert f"out/{name}" in said
        assert (tmp_path / "out" / name).read_text() == "old"
    assert names(tmp_path / "out") == sorted(COMMANDS)
