# SPDX-License-Identifier: Apache-2.0
"""What learns: training, adapter versions, their evaluation, and the quality of ratings."""
