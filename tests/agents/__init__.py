# SPDX-License-Identifier: Apache-2.0
"""Against the real programs of other people; the marker is `agents`, and `make test-agents` runs them."""
