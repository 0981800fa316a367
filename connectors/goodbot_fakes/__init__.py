# SPDX-License-Identifier: Apache-2.0
"""Chat platforms on loopback, for tests: what a connector says is checked, what people do is played.

Each is a package of its own, started as an HTTP server beside the test, and imports aiohttp.
"""
