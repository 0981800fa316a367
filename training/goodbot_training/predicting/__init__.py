# SPDX-License-Identifier: Apache-2.0
"""The reward model: a small head on the model's own states, which predicts ratings and trains nothing.

`head` is the arithmetic, `run` what a child does with it (`docs/worker-protocol.md`, the mode `predict`). The
head lives as long as its child: what comes out of it are chances, and how good they are.
"""

from goodbot_training.predicting.run import PredictJob, run_predict

__all__ = ["PredictJob", "run_predict"]
