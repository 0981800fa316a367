# SPDX-License-Identifier: Apache-2.0
"""Adapter versions: which there are, which one answers, and their way in, out and away.

The files of one version, and what a foreign file may be, are `goodbot.api.adapters`: children that load an
adapter import those.
"""
