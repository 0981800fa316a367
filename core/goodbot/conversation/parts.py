# SPDX-License-Identifier: Apache-2.0
"""The finished parts of what answers."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.access.admission import Admission
from goodbot.access.direct_message import Courier
from goodbot.access.limits import Quotas
from goodbot.access.requests import JoinRequests
from goodbot.api.completions import OwnModel
from goodbot.conversation.captures import Capturing
from goodbot.conversation.connectors import Connectors
from goodbot.conversation.follow_ups import FollowUps, FollowUpTasks
from goodbot.conversation.notes import Notes
from goodbot.conversation.presence import Presence
from goodbot.conversation.ratings import Ratings
from goodbot.learning.evaluation.idle import SpareTime
from goodbot.learning.parts import LearningParts


@dataclass(frozen=True, kw_only=True)
class AnsweringParts(LearningParts):
    """What learns, and what answers people with it."""

    connectors: Connectors
    presence: Presence
    quotas: Quotas
    admission: Admission
    notes: Notes
    ratings: Ratings
    capturing: Capturing
    courier: Courier
    join_requests: JoinRequests
    follow_ups: FollowUps
    follow_up_tasks: FollowUpTasks
    own_model: OwnModel
    """The model that answers, for programs that a connector speaks for."""
    spare: SpareTime
