# SPDX-License-Identifier: Apache-2.0
"""How the servers that goodbot knows are found on this machine, one module each."""
