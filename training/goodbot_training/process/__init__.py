# SPDX-License-Identifier: Apache-2.0
"""The child's process: its entry points, what it answers, and what it says when it ends."""
