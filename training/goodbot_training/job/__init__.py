# SPDX-License-Identifier: Apache-2.0
"""A round's job: the worker protocol's values, checked, the settings, and the rated answers."""
