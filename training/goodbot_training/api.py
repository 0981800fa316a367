# SPDX-License-Identifier: Apache-2.0
"""What the author of an objective needs in the trainer's process: these names stay where they are."""

from goodbot_training.job.settings import TrainingSettings
from goodbot_training.job.types import Baseline
from goodbot_training.objectives import Objective, detach

__all__ = ["Baseline", "Objective", "TrainingSettings", "detach"]
