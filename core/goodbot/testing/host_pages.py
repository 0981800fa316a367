# SPDX-License-Identifier: Apache-2.0
"""What a host in memory answers where a page asks how things are."""

from __future__ import annotations

from collections.abc import Sequence

from goodbot.api.activity import ActivityPage, ActivityWanted, TrailChecked
from goodbot.api.events import UserRef
from goodbot.api.overview import Overview
from goodbot.api.people import PeoplePage, PeopleWanted
from goodbot.api.queues import QueuesSeen, QueueWanted
from goodbot.api.rated import RatedPage, RatedTaught, RatedTopic, RatedWanted
from goodbot.api.report import ReportSeen
from goodbot.api.settings_page import SettingsSeen, SettingWanted
from goodbot.api.turns import OwnNote
from goodbot.api.versions import Versions


class HostPages:
    """The part of `RecordingHost` that answers as a test has set it."""

    def __init__(self) -> None:
        self.language = ""
        """What people read of whom the platform says nothing; empty: English."""
        self.own_notes: list[OwnNote] = []
        self.told_notes: list[tuple[str, ...]] = []
        nothing = "0 of 40 ratings, 40 more until the next training."
        self.seen = Overview(answers="The base model answers now.", ratings=0, needed=40, next=nothing)
        """What `overview` answers; that `user` may see it is the test's affair."""
        self.made = Versions(answers=self.seen.answers, held=False, seen=())
        """What `versions` answers; that `user` may see it is the test's affair."""
        self.shown = RatedPage(answers=())
        """What `rated` answers; that `user` may see it is the test's affair."""
        self.trail = ActivityPage(acts=())
        """What `activity` answers; that `user` may see it is the test's affair."""
        self.known = PeoplePage(asking=(), ask=0, people=(), count=0)
        """What `people` answers; that `user` may see it is the test's affair."""
        self.rated_topics: Sequence[RatedTopic] = ()
        """What `topics` answers."""
        self.lesson = RatedTaught(told="")
        """What `taught` answers."""
        self.reported = ReportSeen()
        """What `report` answers; that `user` may see it is the test's affair."""
        self.reports_begun = 0
        """How often `report` was to begin another one."""
        self.set_up = SettingsSeen(settings=(), file="config.toml")
        """What `settings` answers; that `user` may see it is the test's affair."""
        self.wanted: list[SettingWanted] = []
        """What `change_setting` was told."""
        self.restarts = 0
        """How often `begin_anew` was asked for."""
        self.in_queues = QueuesSeen()
        """What `queues` answers; that `user` may see it is the test's affair."""
        self.queued: dict[int, Sequence[str]] = {}
        """The answers of each queue."""
        self.told_queues: list[QueueWanted] = []
        """What `change_queue` was told."""
        self.left_out: list[str] = []
        """The answers that `leave_out` was told of and that are not taken in again."""

    async def notes(self, user: UserRef, *words: str) -> Sequence[OwnNote]:
        """Return what `own_notes` has; what was told is in `told_notes`."""
        if words:
            self.told_notes.append(words)
        return self.own_notes

    async def overview(self, user: UserRef) -> Overview:
        """Return what `seen` says."""
        return self.seen

    async def versions(self, user: UserRef, *two: int) -> Versions:
        """Return what `made` says."""
        return self.made

    async def rated(self, user: UserRef, wanted: RatedWanted) -> RatedPage:
        """Return what `shown` says."""
        return self.shown

    async def people(self, user: UserRef, wanted: PeopleWanted) -> PeoplePage:
        """Return what `known` says."""
        return self.known

    async def queues(self, user: UserRef) -> QueuesSeen:
        """Return what `in_queues` says."""
        return self.in_queues

    async def change_queue(self, user: UserRef, wanted: QueueWanted) -> str:
        """Note it in `told_queues`."""
        self.told_queues.append(wanted)
        return "Done."

    async def topics(self, user: UserRef) -> Sequence[RatedTopic]:
        """Return what `rated_topics` says."""
        return self.rated_topics

    async def taught(self, user: UserRef, turn: str) -> RatedTaught:
        """Return what `lesson` says."""
        return self.lesson

    async def leave_out(self, user: UserRef, turns: Sequence[str], *, again: bool = False) -> str:
        """Note it in `left_out`: see `ConnectorHost.leave_out`."""
        self.left_out = [one for one in self.left_out if one not in turns] + ([] if again else [*turns])
        return f"{len(turns)} {'count again' if again else 'left out'}."

    async def activity(self, user: UserRef, wanted: ActivityWanted) -> ActivityPage:
        """Return what `trail` says."""
        return self.trail

    async def check_activity(self, user: UserRef) -> TrailChecked:
        """Say that all that `trail` has is as it was written."""
        return TrailChecked(entries=len(self.trail.acts))

    async def report(self, user: UserRef, *, anew: bool = False, ask: bool = False) -> ReportSeen:
        """Return what `reported` says, and count another one: see `ConnectorHost.report`."""
        self.reports_begun += anew
        return self.reported

    async def settings(self, user: UserRef) -> SettingsSeen:
        """Return what `set_up` says."""
        return self.set_up

    async def change_setting(self, user: UserRef, wanted: SettingWanted) -> str:
        """Note it in `wanted`."""
        self.wanted.append(wanted)
        return "Saved."

    async def begin_anew(self, user: UserRef) -> str:
        """Add one to `restarts`."""
        self.restarts += 1
        return "Begun."
