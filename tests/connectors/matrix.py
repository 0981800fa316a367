# SPDX-License-Identifier: Apache-2.0
"""What works where, as docs/platforms.md has it; each cell names the test that shows it.

A test is `FILE::NAME` or `FILE::CLASS::NAME`, below `tests`. `✓` and `–` are held to what the
connector declares, where the core has a word for it. `python -m tests.connectors.matrix` prints the table.
"""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.api.connector import Capability

YES, NO = "✓", "–"
PLATFORMS = {
    "slack": "Slack",
    "telegram": "Telegram",
    "discord": "Discord",
    "teams": "Teams",
    "web": "browser",
    "terminal": "terminal",
}
CONTRACTS = {
    "slack": "connectors/slack/test_contract.py::TestSlack",
    "telegram": "connectors/telegram/test_contract.py::TestTelegram",
    "discord": "connectors/discord/test_contract.py::TestDiscord",
    "teams": "connectors/teams/test_contract.py::TestTeams",
    "web": "connectors/web/test_contract.py::TestWeb",
    "terminal": "connectors/terminal/test_contract.py::TestTerminal",
}
"""Where the contract suite of `goodbot.testing` runs on each."""
TYPED = "cli/test_daemon.py::test_stars_reasons_and_better_answers_from_the_command_line"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """What the page says, and the test that shows it; none for what is not there."""

    text: str
    test: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One thing that people can do, on each platform."""

    name: str
    capability: Capability = Capability.NONE
    """What a connector declares that has it."""
    cells: dict[str, Cell]


def by_contract(test: str, **texts: str) -> dict[str, Cell]:
    """Every platform by one test of the contract suite; `texts` say what is not simply there."""
    return {
        name: Cell(text=NO)
        if texts.get(name) == NO
        else Cell(text=texts.get(name, YES), test=f"{where}::{test}")
        for name, where in CONTRACTS.items()
    }


def by_tests(**tests: str | tuple[str, str]) -> dict[str, Cell]:
    """Some platforms by tests of their own, maybe with a text before it; none elsewhere."""
    cells = dict.fromkeys(PLATFORMS, Cell(text=NO))
    for name, test in tests.items():
        text, test = (YES, test) if isinstance(test, str) else test
        cells[name] = Cell(text=text, test=test)
    return cells


ROWS = (
    Row(name="talk", cells=by_contract("test_it_answers_where_it_was_asked")),
    Row(
        name="thread",
        capability=Capability.THREADS,
        cells=by_contract(
            "test_each_thread_is_a_conversation_of_its_own",
            telegram="topics",
            discord="threads, forums",
            web="conversations",
            terminal=NO,
        ),
    ),
    Row(
        name="stream",
        capability=Capability.STREAMING,
        cells=by_contract(
            "test_a_stream_shows_the_beginning_early",
            telegram="drafts, edits",
            discord="edits",
            teams="✓, edits in groups",
        ),
    ),
    Row(
        name="react",
        capability=Capability.REACTIONS,
        cells=by_contract("test_a_reaction_rates_and_its_removal_takes_that_back", web=NO, terminal=NO),
    ),
    Row(
        name="buttons",
        capability=Capability.BUTTONS,
        cells=by_contract("test_buttons_rate_and_the_last_press_counts", terminal="keys"),
    ),
    Row(
        name="native feedback",
        capability=Capability.NATIVE_FEEDBACK,
        cells=by_tests(
            slack="connectors/slack/test_render.py::test_thumbs_are_slacks_own_feedback_buttons",
            teams="connectors/teams/test_playground.py::"
            "test_teams_s_own_feedback_is_a_rating_and_its_words_a_reason",
        ),
    ),
    Row(
        name="private confirmation",
        cells=by_contract("test_a_press_is_answered_privately", telegram="toast", teams="own chat"),
    ),
    Row(
        name="reasons",
        capability=Capability.COMMENTS,
        cells=by_contract(
            "test_a_reason_and_a_better_answer_come_as_what_they_are",
            slack="form",
            telegram="reply",
            discord="form",
            teams="form",
        )
        | {"terminal": Cell(text="typed", test=TYPED)},
    ),
    Row(
        name="stars",
        cells=by_tests(
            slack="connectors/slack/test_surfaces.py::test_stars_are_plain_buttons",
            telegram="connectors/telegram/test_feedback.py::test_stars_are_pressed",
            discord="connectors/discord/test_surfaces.py::test_stars_rate_where_they_are_the_buttons",
            teams="connectors/teams/test_normalize.py::test_recorded",
            web="connectors/web/test_pages.py::test_an_answer_comes_word_by_word_and_is_rated_by_keyboard",
            terminal=("keys", "cli/test_chat.py::test_digits_are_stars_as_in_the_browser"),
        ),
    ),
    Row(
        name="admin",
        cells=by_tests(
            slack="end_to_end/test_slack.py::test_who_may_what_in_a_channel",
            telegram="end_to_end/test_telegram.py::test_who_may_what",
            discord="end_to_end/test_discord.py::test_who_may_what_on_a_server",
            teams="end_to_end/test_teams.py::test_who_may_what_in_a_channel",
            web="connectors/web/test_whole.py::test_a_command_and_its_confirmation",
            terminal="cli/test_daemon.py::test_pause_off_resume_rollback",
        ),
    ),
    Row(
        name="pairing",
        cells=by_tests(
            slack="end_to_end/test_slack.py::test_pair_talk_rate_in_ten_ways_train_and_go_back",
            telegram="end_to_end/test_telegram.py::test_pair_talk_rate_in_every_way_train_and_go_back",
            discord="end_to_end/test_discord.py::test_pair_talk_rate_in_ten_ways_train_and_go_back",
            teams="end_to_end/test_teams.py::test_pair_talk_rate_in_ten_ways_train_and_go_back",
            web=(
                "by link",
                "connectors/web/test_pages.py::test_a_link_signs_in_once_and_leaves_the_address_bar",
            ),
            terminal=("needless", "cli/test_chat.py::test_it_starts_a_goodbot_talks_rates_and_stops_it"),
        ),
    ),
    Row(
        name="reconcile",
        capability=Capability.RECONCILE,
        cells=by_tests(
            slack="connectors/slack/test_faults.py::test_a_restart_asks_for_reactions_that_were_missed",
            telegram=("for a day", f"{CONTRACTS['telegram']}::test_a_restart_goes_on_after_the_last_commit"),
            discord="connectors/discord/test_faults.py::"
            "test_killed_and_away_for_too_long_the_reaction_is_found_by_asking",
        ),
    ),
)


def table() -> list[str]:
    """The lines of the page."""
    lines = [" | ".join(["", *PLATFORMS.values()]), "---|" * (len(PLATFORMS) + 1)]
    lines += [" | ".join([row.name, *(row.cells[name].text for name in PLATFORMS)]) for row in ROWS]
    return [f"|{lines[0]} |", f"|{lines[1]}", *(f"| {line} |" for line in lines[2:])]


if __name__ == "__main__":
    print("\n".join(table()))
