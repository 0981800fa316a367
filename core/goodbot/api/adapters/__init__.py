# SPDX-License-Identifier: Apache-2.0
"""An adapter's directory: what a backend writes, the core keeps and a server is given."""
