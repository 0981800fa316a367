# SPDX-License-Identifier: Apache-2.0
"""What plugins implement and exchange with the core: contracts, events, ratings, hooks."""
