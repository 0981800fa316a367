# SPDX-License-Identifier: Apache-2.0
"""Rated answers out of files: of goodbot's own, and of other programs."""
