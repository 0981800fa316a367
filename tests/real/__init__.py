# SPDX-License-Identifier: Apache-2.0
"""On a real model, SmolLM2-135M-Instruct; the marker is `real`, and `make test-real` runs them."""
