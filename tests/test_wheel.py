"""The wheel, as somebody gets it: built from the sdist, installed into a new environment, far from the checkout."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SMOKE = """
import prunus
from prunus import ArgminTreeClassifier, ArgminTreeClusterer, export_html, export_text, ops
assert "site-packages" in prunus.__file__, prunus.__file__
assert "cpp" in ops.available_backends(), ops.available_backends()
X, y = [[0.0, "a"], [1.0, "b"], [2.0, None], [3.0, "a"]] * 10, ["low", "low", "high", "high"] * 10
tree = ArgminTreeClassifier(depth=2, random_state=0).fit(X, y)
assert tree.score(X, y) == 1.0
assert "class: low" in export_text(tree)
assert export_html(tree, "tree.html", X, y).stat().st_size > 10_000
prunus.save(tree, "tree.prunus")
assert (prunus.load("tree.prunus").predict(X) == tree.predict(X)).all()
assert ArgminTreeClusterer(n_clusters=2, random_state=0).fit_predict(X).max() == 1
"""


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_installs_and_works(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--outdir", tmp_path, ROOT, cwd=tmp_path)
    (sdist,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    assert sdist.name.startswith("prunus-")
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "--constraint", ROOT / "constraints.txt", wheel, cwd=tmp_path)
    run(python, "-c", SMOKE, cwd=tmp_path)
    assert "cpp" in run(tmp_path / "env" / "bin" / "prunus", "info", cwd=tmp_path)
    with_tables = run(python, "-m", "prunus", "fit", "--help", cwd=tmp_path)
    assert "--target" in with_tables
