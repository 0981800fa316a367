# SPDX-License-Identifier: Apache-2.0
"""`make bench`: every benchmark, each printing a table. None of them is part of the test suite."""

from __future__ import annotations

import sys

from tests.benchmarks import bench_cli, bench_estimate, bench_store
from tests.learning import benchmark as learning

if __name__ == "__main__":
    bench_store.main()
    bench_cli.main()
    bench_estimate.main(["--only", "tiny"])
    raise SystemExit(learning.main(sys.argv[1:]))
