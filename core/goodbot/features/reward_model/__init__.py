# SPDX-License-Identifier: Apache-2.0
"""The reward model: ratings are predicted from the model's own states, to find slips and what to ask."""
