# SPDX-License-Identifier: Apache-2.0
"""The backends: `torch` and `mlx`, and what they share. Importing this imports no framework.

`adapters` (the PEFT layout), `chat` (tokenizer and template), `packing` (rollouts → index arrays), `scoring`
(what a policy says of answers),
`decoding` (what a sampling loop is made of), `generating` (answers to what is known beforehand),
`answers` (those that come and go, with `prefixes` of conversations) and `base` (one backend around one
model) are framework-free; a backend adds a model: forward, gradient, optimizer. mlx-lm batches
answers (`mlx.batching`); for torch `batching` does, by a family's `abilities`.
"""
