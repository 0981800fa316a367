# SPDX-License-Identifier: Apache-2.0
"""One round of training: from the rated turns to a new version's weights."""
