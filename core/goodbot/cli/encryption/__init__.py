# SPDX-License-Identifier: Apache-2.0
"""Encryption on, off, and with another key: `goodbot encrypt`, `goodbot decrypt`.

`change` rewrites what is stored, file by file, so that it can be killed and goes on; `command` asks and tells.
"""
