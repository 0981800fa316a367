# SPDX-License-Identifier: Apache-2.0
"""Encryption on, off, and with another key: `goodbot encrypt`, `goodbot decrypt`.

`change` rewrites what is stored, file by file: killed, it can go on. `command` asks and tells.
"""
