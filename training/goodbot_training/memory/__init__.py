# SPDX-License-Identifier: Apache-2.0
"""How a round fits into the memory that is there, and what it costs."""
