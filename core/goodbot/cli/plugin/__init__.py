# SPDX-License-Identifier: Apache-2.0
"""`goodbot plugin`: writes the package of a plugin to begin with; `templates/` has one for each kind."""
