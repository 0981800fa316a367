# SPDX-License-Identifier: Apache-2.0
"""What `goodbot report` says: who taught what, which groups of answers are liked less, what looks wrong."""
