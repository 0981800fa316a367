# SPDX-License-Identifier: Apache-2.0
"""Adapters and models in the formats of other programs: MLX, GGUF, and whole models with the adapter in.

`python -m goodbot_training.formats` is the child that does it; `docs/worker-protocol.md` says what it
is told and tells. Every file that it writes is read back, and the model must give the same logits with
it: see `proof`.
"""
