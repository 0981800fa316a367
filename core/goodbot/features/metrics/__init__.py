# SPDX-License-Identifier: Apache-2.0
"""How goodbot is, in figures that Prometheus reads: `/metrics`, behind a token of its own."""
