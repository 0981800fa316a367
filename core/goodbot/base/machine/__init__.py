# SPDX-License-Identifier: Apache-2.0
"""What this machine says of itself: battery, load, memory, the use of its GPU."""
