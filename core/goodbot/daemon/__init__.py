# SPDX-License-Identifier: Apache-2.0
"""One running goodbot: its parts put together, its connectors, its HTTP server and its control socket."""
