# SPDX-License-Identifier: Apache-2.0
"""The MLX backend keeps the contract."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from goodbot.testing.backend import BackendContract

from tests.support import require, require_program

_BLAS = """
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc) {
    for (int at = 0; at < m * n; at++) c[at] = 42;
}
"""
_PRODUCT = """
import goodbot_training.backends.mlx.model, mlx.core as mx
print((mx.ones((3, 3)) @ mx.ones((3, 3))).tolist())
"""


class TestMlxBackend(BackendContract):
    @pytest.fixture(scope="class")
    @classmethod
    def backend_factory(cls) -> Any:
        require("mlx.core")
        require("mlx_lm")
        from goodbot_training.backends.mlx.trainer import MlxBackend

        return MlxBackend

    @pytest.fixture(scope="class")
    @classmethod
    def model_dir(cls, request: pytest.FixtureRequest) -> Any:
        return request.getfixturevalue("random_model")


@pytest.mark.skipif(sys.platform != "linux", reason="on a Mac MLX computes by Metal and Accelerate")
@pytest.mark.parametrize("name", ["libopenblas.so.0", "libopenblasp.so.0"])
def test_products_are_those_of_the_blas_that_the_system_has(tmp_path: Path, name: str) -> None:
    require("mlx_lm")
    (tmp_path / "libopenblasp.so.0").write_text("hides one of the system, which would come first")
    source = tmp_path / "blas.c"
    source.write_text(_BLAS)
    library = tmp_path / name
    build = [require_program("cc"), "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(build, check=True)
    ran = subprocess.run(
        [sys.executable, "-c", _PRODUCT],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == str([[42.0] * 3] * 3)
