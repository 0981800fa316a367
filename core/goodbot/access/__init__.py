# SPDX-License-Identifier: Apache-2.0
"""Who may talk, rate and administer, how they come to it, and how they are forgotten."""
