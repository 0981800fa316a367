# SPDX-License-Identifier: Apache-2.0
"""The child's process: the worker protocol, its values and settings, and what it tells."""
