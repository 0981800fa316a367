# SPDX-License-Identifier: Apache-2.0
"""Connectors that come with goodbot: one folder a platform, each a plugin."""
