# SPDX-License-Identifier: Apache-2.0
"""The chat in a real Chromium, beside a core whose answers a test decides."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from goodbot.api.events import Button, MessageEvent, Outcome, PressEvent, RatingKind, Receipt, Reply
from goodbot.base.errors import ServerError

from tests.connectors.web.browsing import Person, person, pressed, told, until
from tests.connectors.web.scripted import Scripted, waiting

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_link_signs_in_once_and_leaves_the_address_bar(chromium: Any, bot: Scripted) -> None:
    link = bot.link("ada")
    bot.talkers = {"bob"}
    async with person(chromium) as ada:
        await ada.open(link)
        assert ada.page.url == f"{bot.address}/login"
        await ada.page.keyboard.press("Enter")  # the button has the focus
        await ada.page.locator("#sign-out").wait_for()
        assert ada.page.url == f"{bot.address}/progress", "who rates looks at that first"
        assert await ada.page.locator("#user").inner_text() == "ada"
        [cookie] = await ada.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert await ada.page.evaluate("document.cookie") == ""
    async with person(chromium) as bob:
        await bob.open(link)
        await bob.page.get_by_role("button", name="Sign in").click()
        await bob.sees("This link was used already")
        await bob.page.get_by_label("The link, or its code").fill(bot.link("bob"))
        await bob.page.keyboard.press("Enter")
        await bob.page.locator("#sign-out").wait_for()
        assert bob.page.url == f"{bot.address}/", "who only talks comes to talk"


async def test_a_file_is_refused_with_a_reason_wherever_it_is_dropped(ada: Person, bot: Scripted) -> None:
    why = ada.page.get_by_role("dialog", name="Files cannot be sent here yet")
    field = ada.page.get_by_label("Message", exact=True)
    await field.fill("what I write")
    for how, at in (("drop", "#words"), ("paste", "#words"), ("drop", ".top"), ("drop", "#thread")):
        assert await ada.gives(how, "file", at=at), "the browser would leave the page for it"
        assert await ada.gives(how, "file", at=at), "and a second time"
        await why.wait_for()
        await ada.page.keyboard.press("Enter")  # the button has the focus
        await why.wait_for(state="hidden")
    assert await field.input_value() == "what I write"
    for how, *parts in (("drop", "text"), ("paste", "text"), ("paste", "text", "file")):
        assert not await ada.gives(how, *parts), "words are the browser's to put in"
    assert await why.is_hidden()
    await ada.page.goto(f"{bot.address}/notes")
    await ada.page.locator("#sign-out").wait_for()
    assert await ada.gives("drop", "file", at="main")
    await why.wait_for()
    assert bot.events == []


async def test_signing_out_ends_it_in_every_tab(ada: Person, bot: Scripted) -> None:
    first = ada.page
    await ada.open(bot.address)
    await ada.page.get_by_role("button", name="Sign out").click()
    await ada.page.wait_for_url("**/login")
    await first.get_by_role("heading", name="You are signed out").wait_for()


async def test_signing_out_that_did_not_work_is_not_taken_for_it(ada: Person, bot: Scripted) -> None:
    await bot.connector.stop()
    await ada.page.get_by_role("button", name="Sign out").click()
    await ada.sees("you are still signed in")
    await bot.connector.start()


async def test_who_signs_in_in_the_same_browser_does_nothing_in_the_other_s_tab(
    ada: Person, bot: Scripted
) -> None:
    await ada.ask("a secret of mine")
    first = ada.page
    await ada.sign_in(bot.link("bob"))
    await first.get_by_role("heading", name="You are signed out").wait_for()
    await ada.page.goto(f"{bot.address}/#main")
    await ada.ask("hello")
    assert [e.user.id for e in bot.events] == ["ada", "bob"]


async def test_a_tab_that_has_not_heard_of_it_is_refused(ada: Person, bot: Scripted) -> None:
    await ada.page.route_web_socket("**/api/live*", lambda _: None)  # so it does not hear of it
    await ada.page.goto(f"{bot.address}/rate")
    bot.waiting.append(waiting("t1", "Question?", "Answer."))
    await ada.page.reload()
    await ada.sees("Question?")
    first = ada.page
    await ada.sign_in(bot.link("bob"))
    await first.get_by_role("button", name="Good").click()
    await first.get_by_role("heading", name="You are signed out").wait_for()
    assert told(bot) == []


async def test_a_link_that_is_opened_in_the_same_tab_is_used(chromium: Any, bot: Scripted) -> None:
    async with person(chromium) as ada:
        await ada.open(f"{bot.address}/login")
        await ada.page.goto(bot.link("ada"))  # another fragment: nothing is loaded
        await ada.sees("Your link is ready.")
        await ada.page.get_by_role("button", name="Sign in").click()
        await ada.page.locator("#sign-out").wait_for()


async def test_who_comes_too_early_gets_there(chromium: Any, bot: Scripted) -> None:
    link = bot.link("ada")
    await bot.connector.stop()
    async with person(chromium) as ada:
        await ada.open(link)
        await ada.sees("goodbot cannot answer yet.")
        await bot.connector.start()
        await ada.sees("Your link is ready.")  # behind the # it was kept


async def test_a_key_that_is_held_down_rates_once(ada: Person, bot: Scripted) -> None:
    await ada.ask("hello")
    await ada.key()
    for _ in range(4):
        await ada.page.keyboard.down("g")
    await ada.page.keyboard.up("g")
    await ada.sees("Good. 12 of 40")
    assert len(told(bot)) == 1


async def test_the_keys_can_be_switched_off(ada: Person, bot: Scripted) -> None:
    await ada.ask("hello")
    await ada.key("?")
    await ada.page.get_by_label("Use these keys in this browser").uncheck()
    await ada.page.get_by_role("button", name="Close").click()
    await ada.key("g")
    await ada.page.reload()
    await ada.sees("You said: hello")
    await ada.key("g")
    await ada.page.locator("article.bot").get_by_role("button", name="Bad").click()
    await ada.sees("Bad. 12 of 40")
    assert [event.value for event in told(bot)] == [-1.0]


async def test_who_sends_by_mouse_types_on_into_the_field(ada: Person, bot: Scripted) -> None:
    await ada.ask("before")
    await ada.page.get_by_label("Message", exact=True).fill("hello")
    await ada.page.get_by_role("button", name="Send").click()
    await ada.page.keyboard.type("b1g")
    assert await ada.page.get_by_label("Message", exact=True).input_value() == "b1g"
    await ada.sees("You said: hello")
    assert told(bot) == []


async def test_a_better_answer_that_is_being_written_outlives_a_restart(ada: Person, bot: Scripted) -> None:
    await ada.ask("hello")
    await ada.key("e")
    await ada.page.keyboard.type("Dear friend, ")
    await bot.connector.stop()
    await ada.sees("goodbot cannot be reached.")
    await bot.restart()
    await ada.page.locator("#banner").wait_for(state="hidden")
    await asyncio.sleep(0.3)
    await ada.page.keyboard.type("hi!")
    await ada.page.keyboard.press("Control+Enter")
    await until(lambda: told(bot))
    assert told(bot)[-1].text == "Dear friend, hi!"


async def test_an_answer_comes_word_by_word_and_is_rated_by_keyboard(ada: Person, bot: Scripted) -> None:
    bot.go_on.clear()
    await ada.page.get_by_label("Message", exact=True).fill("one two three four")
    await ada.page.keyboard.press("Enter")
    await ada.sees("You said: one")
    assert await ada.page.locator("article.bot .rating").count() == 0, "not whole yet"
    assert await ada.page.locator("article.bot").get_attribute("aria-busy") == "true"
    bot.go_on.set()
    answer = ada.page.locator("article.bot")
    await answer.locator(".rating").wait_for()
    for key, value in (("g", 1.0), ("b", -1.0), ("4", 0.5)):
        await ada.key(key)
        await until(lambda value=value: told(bot) and told(bot)[-1].value == value)
    await pressed(answer, "Bad").wait_for()
    assert await answer.get_by_label("4 stars").get_attribute("aria-pressed") == "true"
    assert [event.source for event in told(bot)] == ["button", "button", "stars"]
    await ada.sees("14 of 40 ratings (26 to go).")
    await ada.key("u")
    await until(lambda: told(bot)[-1].kind is RatingKind.RETRACT)
    assert told(bot)[-1].source == "", "all that was said"
    await pressed(answer, "Bad").wait_for(state="detached")


async def test_who_waits_is_told_so(ada: Person, bot: Scripted) -> None:
    bot.wait_at = 0
    bot.go_on.clear()
    await ada.page.get_by_label("Message", exact=True).fill("hello")
    await ada.page.keyboard.press("Enter")
    await ada.sees("goodbot is thinking…")
    await ada.page.reload()
    await ada.sees("goodbot is thinking…")
    bot.go_on.set()
    await ada.sees("You said: hello")
    assert await ada.page.get_by_text("goodbot is thinking…").count() == 0


MARKDOWN = """# A heading
Some **bold**, *italic* and `code`,
on two lines. See [the docs](https://example.org/a_b) or http://example.org/x.

- one
- two **strong**

3. three
4. four

> quoted

```python
if a < b:
    print("**not bold**")
```
2 * 3 * 4, a_b_c, and 5 > 4"""


async def test_a_little_markdown_is_shown(ada: Person, bot: Scripted) -> None:
    bot.answers["format"] = MARKDOWN
    words = (await ada.ask("format")).locator(".words")

    async def texts(selector: str) -> list[str]:
        return await words.locator(selector).all_inner_texts()

    assert await texts("[role=heading]") == ["A heading"]
    assert await texts("p strong, p em") == ["bold", "italic"]
    assert await texts("p code") == ["code"]
    assert await texts("ul li") == ["one", "two strong"]
    assert await texts("ol[start='3'] li") == ["three", "four"]
    assert await texts("blockquote") == ["quoted"]
    assert await texts("pre") == ['if a < b:\n    print("**not bold**")']
    assert await words.locator("a").evaluate_all("all => all.map(a => a.href)") == [
        "https://example.org/a_b",
        "http://example.org/x",
    ]
    assert "2 * 3 * 4, a_b_c, and 5 > 4" in await texts("p")


async def test_pressing_again_takes_that_press_back(ada: Person, bot: Scripted) -> None:
    answer = await ada.ask("hello")
    good = answer.get_by_role("button", name="Good")
    await good.click()
    await ada.sees("Good. 12 of 40")
    await good.click()
    await ada.sees("Taken back.")
    assert [(event.kind, event.source) for event in told(bot)] == [
        (RatingKind.RATE, "button"),
        (RatingKind.RETRACT, "button"),
    ]
    assert await good.get_attribute("aria-pressed") == "false"


async def test_a_bad_answer_is_tried_again_in_its_place(ada: Person, bot: Scripted) -> None:
    answer = await ada.ask("hello")
    await answer.get_by_role("button", name="Bad").click()
    await answer.get_by_role("button", name="Too long").click()
    await ada.sees("Here is another answer.")
    assert await ada.page.locator("article.bot").count() == 1
    assert await ada.page.get_by_text("You said: hello").count() == 0
    await answer.locator(".rating").wait_for()
    assert await pressed(answer, "Bad").count() == 0, "another answer starts with no rating"
    [press] = [event for event in bot.events if isinstance(event, PressEvent)]
    assert (press.action, press.turn) == ("again:long", told(bot)[0].turn)


async def test_a_reason_and_a_better_answer_are_typed_in_place(ada: Person, bot: Scripted) -> None:
    answer = await ada.ask("hello")
    await ada.key("c")
    await ada.page.keyboard.type("Too stiff,\nand too long.")
    await ada.page.get_by_role("button", name="Keep it").click()
    await ada.sees("Your reason is kept.")
    await ada.key("e")
    await ada.page.keyboard.type("Hi!")
    await ada.page.keyboard.press("Control+Enter")
    await ada.sees("Your better answer is kept.")
    assert [(event.kind, event.text) for event in told(bot)] == [
        (RatingKind.COMMENT, "Too stiff,\nand too long."),
        (RatingKind.BETTER, "Hi!"),
    ]
    await answer.get_by_role("button", name="Say why: your reason is kept").click()
    shown = await ada.page.get_by_label("What was wrong, or right?").input_value()
    assert shown == "Too stiff,\nand too long.", "to be read again, and changed"


async def test_stop_ends_an_answer_and_keeps_what_was_written(ada: Person, bot: Scripted) -> None:
    bot.go_on.clear()
    bot.pause = 0.02
    await ada.page.get_by_label("Message", exact=True).fill("one two three four")
    await ada.page.keyboard.press("Enter")
    await ada.sees("You said: one")
    await ada.page.get_by_role("button", name="Stop the answer").click()
    await until(lambda: bot.connector.stopped)
    bot.go_on.set()
    await ada.sees("Stopped.")
    article = ada.page.locator("article.bot")
    assert await article.locator(".words").inner_text() == "You said: one"
    assert await article.locator(".rating").count() == 0
    assert not await ada.page.get_by_role("button", name="Stop the answer").is_visible()
    assert await ada.page.get_by_label("Message", exact=True).input_value() == "", "nobody wants it again"


async def test_a_stop_that_comes_too_late_stops_nothing_later(ada: Person, bot: Scripted) -> None:
    answer = await ada.ask("hello")
    id_ = await answer.get_attribute("data-id")
    await ada.page.evaluate(
        "body => fetch('/api/do', {method: 'POST', body, headers: {'Content-Type': 'application/json'}})",
        f'{{"stop": "{id_}", "in": "main", "id": "s1"}}',
    )
    await answer.get_by_role("button", name="Bad").click()
    await answer.get_by_role("button", name="Wrong").click()
    await ada.sees("Here is another answer.")


async def test_a_command_is_answered_for_this_person(ada: Person, bot: Scripted) -> None:
    await ada.page.get_by_label("Message", exact=True).fill("/rl status now")
    await ada.page.keyboard.press("Enter")
    await ada.sees("You typed status.")
    await ada.sees("/rl status now")
    await ada.page.get_by_role("button", name="Dismiss").click()
    assert await ada.page.locator("article.command").count() == 0


async def test_several_conversations_and_a_reload_show_what_was_said(ada: Person, bot: Scripted) -> None:
    await ada.ask("About cats")
    await ada.page.get_by_role("button", name="New conversation").click()
    answer = await ada.ask("About dogs")
    await answer.get_by_role("button", name="Good").click()
    await ada.sees("Good. 12 of 40")
    first, second = [event for event in bot.events if isinstance(event, MessageEvent)]
    assert first.channel.thread != second.channel.thread
    await ada.page.reload()
    await ada.sees("You said: About dogs")
    await pressed(ada.page.locator("article.bot"), "Good").wait_for()
    assert await ada.page.get_by_text("You said: About cats").count() == 0
    await ada.page.get_by_role("link", name="About cats").click()
    await ada.sees("You said: About cats")


async def test_what_is_typed_at_once_belongs_to_the_new_conversation(ada: Person, bot: Scripted) -> None:
    await ada.ask("About cats")
    slow = asyncio.Event()

    async def late(route: Any) -> None:
        await slow.wait()
        await route.continue_()

    await ada.page.route("**/api/conversation?*", late)
    await ada.page.get_by_role("button", name="New conversation").click()
    await ada.ask("About dogs")
    slow.set()
    first, second = [event for event in bot.events if isinstance(event, MessageEvent)]
    assert first.channel.thread != second.channel.thread
    assert await ada.page.get_by_text("You said: About cats").count() == 0


async def test_two_tabs_show_the_same(ada: Person, bot: Scripted) -> None:
    await ada.ask("hello")
    first = ada.page
    second = await ada.open(first.url)
    await ada.sees("You said: hello")
    await first.bring_to_front()
    await first.get_by_role("button", name="Bad").click()
    await pressed(second.locator("article.bot"), "Bad").wait_for()
    ada.page = first
    await ada.ask("and again")
    await second.get_by_text("You said: and again", exact=True).wait_for()


async def test_what_is_typed_while_goodbot_is_away_comes_when_it_is_back(ada: Person, bot: Scripted) -> None:
    answer = await ada.ask("before")
    await bot.connector.stop()
    await ada.sees("goodbot cannot be reached.")
    await ada.page.get_by_label("Message", exact=True).fill("typed while away")
    await ada.page.keyboard.press("Enter")
    await ada.sees("Not sent yet.")
    await answer.get_by_role("button", name="Good").click()
    await ada.page.reload()  # the page cannot be served now, its outbox is still there
    await bot.restart()
    await ada.page.reload()
    await ada.sees("You said: typed while away")
    await until(lambda: told(bot))
    asked = [event.text for event in bot.events if isinstance(event, MessageEvent)]
    assert asked == ["before", "typed while away"]
    assert [event.value for event in told(bot)] == [1.0]


async def test_a_page_that_stayed_open_over_a_restart_goes_on(ada: Person, bot: Scripted) -> None:
    await ada.ask("before")
    await bot.restart()
    await ada.ask("after")
    await ada.sees("You said: before")
    assert not await ada.page.locator("#banner").is_visible()


async def test_a_message_that_the_disk_refused_is_sent_again(ada: Person, bot: Scripted) -> None:
    bot.refuse(2)
    await ada.ask("keep this")
    assert len([event for event in bot.events if isinstance(event, MessageEvent)]) == 1


async def test_a_late_list_of_conversations_does_not_take_back_what_was_told_since(
    ada: Person, bot: Scripted
) -> None:
    """The page asks for the list as its line opens; the answer may come after the news."""
    read, go_on = asyncio.Event(), asyncio.Event()

    async def late(route: Any) -> None:
        answer = await route.fetch()
        read.set()
        await go_on.wait()
        await route.fulfill(response=answer)

    await until(lambda: bot.connector._live._pages.get("ada"))
    await ada.page.route("**/api/me", late)
    bot.connector._live.stale("ada")
    await read.wait()
    channel = await bot.connector.private("ada")
    assert channel is not None
    await bot.connector.send(channel, Reply(text="Version 2 is in use.", silent=True))
    await ada.page.get_by_role("link", name="News from goodbot").wait_for()
    async with ada.page.expect_response("**/api/me"):
        go_on.set()
    await ada.page.unroute("**/api/me")
    await ada.page.get_by_role("link", name="News from goodbot").click()
    await ada.sees("Version 2 is in use.")


async def test_news_are_a_conversation_of_their_own(ada: Person, bot: Scripted) -> None:
    channel = await bot.connector.private("ada")
    assert channel is not None
    await bot.connector.send(channel, Reply(text="Version 2 is in use.", silent=True))
    await ada.page.get_by_role("link", name="News from goodbot").click()
    await ada.sees("Version 2 is in use.")


_WATCH = """() => {
  window.dead = [];
  new MutationObserver(() => {
    for (const one of document.querySelectorAll(".offer-row button")) window.dead.push(one.disabled);
  }).observe(document.body, { childList: true, subtree: true });
}"""


async def test_a_question_unasked_has_buttons_of_which_one_is_pressed(ada: Person, bot: Scripted) -> None:
    """Also after a reload, as long as none was; what comes of it is news, too."""
    channel = await bot.connector.private("ada")
    assert channel is not None
    choices = (Button(action="run:compare 7 a", label="A"), Button(action="run:compare 7 b", label="B"))
    await bot.connector.send(channel, Reply(text="Which is better?", buttons=choices, silent=True))
    await ada.page.get_by_role("link", name="News from goodbot").click()
    await ada.sees("Which is better?")
    await ada.page.reload()
    row = ada.page.get_by_role("group", name="Choices")
    await row.get_by_role("button", name="B", exact=True).click()
    await until(lambda: [e for e in bot.events if isinstance(e, PressEvent)])
    assert [e.action for e in bot.events if isinstance(e, PressEvent)] == ["run:compare 7 b"]
    await ada.sees("You chose B.")
    assert await row.count() == 0
    [press] = [e for e in bot.events if isinstance(e, PressEvent)]
    receipt = Receipt(
        event_id=press.event_id, outcome=Outcome.ACCEPTED, text="Noted. The next one.", offer=choices[:1]
    )
    await ada.page.evaluate(_WATCH)
    await bot.connector.acknowledge(press, receipt)
    await ada.sees("Noted. The next one.")
    assert await row.get_by_role("button").count() == 1
    # It may have come under a pointer that clicks twice: dead at first, and soon alive.
    assert (await ada.page.evaluate("window.dead"))[0] is True
    await ada.page.reload()
    await ada.sees("You chose B.")
    await row.get_by_role("button", name="A", exact=True).click()  # of the next question alone
    await until(lambda: len([e for e in bot.events if isinstance(e, PressEvent)]) == 2)
    await ada.sees("You chose A.")


async def test_who_may_not_rate_is_shown_nothing_of_it(chromium: Any, bot: Scripted) -> None:
    bot.talkers = {"bob"}
    async with person(chromium) as bob:
        await bob.come_back(bot, "bob")
        await bob.sees("Ask anything.")
        assert not await bob.page.get_by_text("Then say whether the answer was good").is_visible()
        assert not await bob.page.get_by_role("link", name="To rate").is_visible()
        await bob.page.goto(f"{bot.address}/rate")
        await bob.sees("Only people that my owner has chosen can rate my answers")


async def test_what_a_training_does_is_in_sight(ada: Person, bot: Scripted) -> None:
    bot.trains = "learning: 12/32, 2 min left"
    await ada.sees("learning: 12/32, 2 min left")
    await ada.page.goto(f"{bot.address}/rate")
    await ada.sees("learning: 12/32, 2 min left")  # a page that opens later
    bot.trains = ""
    await ada.page.locator("#learning").wait_for(state="hidden")


async def test_a_slash_is_enough_for_a_command(ada: Person, bot: Scripted) -> None:
    await ada.page.get_by_label("Message", exact=True).fill("/help")
    await ada.page.keyboard.press("Enter")
    await ada.sees("You typed help.")


async def test_what_is_said_while_a_page_reads_anew_is_shown(ada: Person, bot: Scripted) -> None:
    """What it reads holds the frame's number by then, and no receipts."""
    go_on, live = asyncio.Event(), bot.connector._live

    async def late(route: Any) -> None:
        await go_on.wait()
        await route.continue_()

    await ada.page.route("**/api/conversation?*", late)
    async with ada.page.expect_request("**/api/conversation?*"):
        live.stale("ada")
    before = live.last("ada")
    await ada.page.get_by_label("Message", exact=True).fill("/help")
    await ada.page.keyboard.press("Enter")
    await until(lambda: live.last("ada") != before)
    go_on.set()
    await ada.sees("You typed help.")


async def test_a_command_is_answered_before_the_line_is_open(ada: Person, bot: Scripted) -> None:
    """On a slow machine somebody types before it is."""
    opened = asyncio.Event()

    async def late(line: Any) -> None:
        await opened.wait()
        line.connect_to_server()

    await ada.page.route_web_socket("**/api/live*", late)
    await ada.page.reload()
    await ada.page.locator("#sign-out").wait_for()
    async with ada.page.expect_response("**/api/do"):
        await ada.page.get_by_label("Message", exact=True).fill("/help")
        await ada.page.keyboard.press("Enter")
    opened.set()
    await ada.sees("You typed help.")


async def test_what_is_too_long_is_not_cut_off_unsaid(
    ada: Person, bot: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = ada.page.get_by_label("Message", exact=True)
    await field.fill("x" * 33_000)
    await ada.page.keyboard.press("Enter")
    await ada.sees("That is too long: at most 32000 characters.")
    assert len(await field.input_value()) == 33_000, "it is given back"

    async def no_room(stream: object, text: str) -> None:
        raise ServerError("Send me about 900 characters of it.")

    monkeypatch.setattr(bot, "_words", no_room)
    await field.fill("too long for the model")
    await ada.page.keyboard.press("Enter")
    await ada.sees("Send me about 900 characters of it.")
    assert await field.input_value() == "too long for the model", "and so is what has no answer"


async def test_a_better_answer_that_was_left_is_there_again(ada: Person, bot: Scripted) -> None:
    await ada.ask("hello")
    await ada.page.get_by_role("button", name="Better answer").click()
    words = ada.page.get_by_label("What should the answer have been?")
    await words.fill("half a sent")
    await ada.page.keyboard.press("Escape")
    await ada.page.get_by_role("button", name="Better answer (draft)", exact=True).click()
    assert await words.input_value() == "half a sent"
    await words.fill("A whole sentence.")
    await ada.page.keyboard.press("Control+Enter")
    await ada.page.get_by_role("button", name="Better answer: yours is kept", exact=True).wait_for()
    assert await ada.page.get_by_text("(draft)").count() == 0


async def test_who_was_never_here_is_not_told_that_they_are_signed_out(chromium: Any, bot: Scripted) -> None:
    async with person(chromium) as bob:
        await bob.open(bot.address)
        await bob.page.get_by_role("heading", name="Sign in to goodbot").wait_for()
        assert await bob.page.get_by_text("signed out").count() == 0


async def test_who_is_forgotten_is_told_so_in_every_tab(ada: Person, bot: Scripted) -> None:
    first = ada.page
    await ada.open(f"{bot.address}/rate")
    await ada.page.locator("#sign-out").wait_for()
    await until(lambda: len(bot.connector._live._pages.get("ada", ())) == 2)
    await bot.connector.forget("ada")
    for page in (first, ada.page):
        await page.get_by_role("heading", name="You are forgotten").wait_for()
        assert await page.locator("#user").inner_text() == ""


async def test_people_see_their_own_only(chromium: Any, ada: Person, bot: Scripted) -> None:
    await ada.ask("a secret of mine")
    async with person(chromium) as bob:
        await bob.come_back(bot, "bob")
        await bob.ask("hello")
        assert await bob.page.get_by_text("a secret of mine").count() == 0
        await bob.page.goto(ada.page.url)
        await bob.page.get_by_label("Message", exact=True).wait_for()
        assert await bob.page.get_by_text("a secret of mine").count() == 0
