# SPDX-License-Identifier: Apache-2.0
"""What has no idea of goodbot's in it: time, errors, text, processes. It uses no other room."""
