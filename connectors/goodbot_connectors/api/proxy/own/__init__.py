# SPDX-License-Identifier: Apache-2.0
"""Answers of our own model in each API.

`endpoint` decides how: a server of the owner's that speaks chat completions is asked itself (`edited` for the
same API, `asking` for the others), else the model is asked through the core (`embedded`). What comes is the
same few `deltas` either way, which a `writer` puts into the words of an API.
"""
