# SPDX-License-Identifier: Apache-2.0
"""A whole goodbot in one file, and back: `goodbot backup`, `goodbot restore`.

`archive` is the file format, `make` writes one, `restore` brings one back. In it are the database,
the adapters, the settings and what the connectors keep; not in it are tokens and base models.
Nothing here prints or asks.
"""
