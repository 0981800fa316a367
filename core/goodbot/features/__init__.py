# SPDX-License-Identifier: Apache-2.0
"""What not everybody needs: each a plugin of our own, by the public API, imported by no other room."""
