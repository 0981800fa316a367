# SPDX-License-Identifier: Apache-2.0
"""Code in an answer has colours, and is never more than the text that it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connectors.web.browsing import Person, until
from tests.connectors.web.scripted import Scripted

pytestmark = pytest.mark.asyncio(loop_scope="module")

CODE = """def half(x):  # of "it"
    return "a < b" + str(x / 2)"""
HOSTILE = (
    "</code></pre><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>\n"
    '"${`<svg onload=window.broken=1>`}" &lt;b&gt; <style>*{display:none}</style> /* <!-- --> <?php echo 1;'
)
LANGUAGES = (
    "html",
    "js",
    "css",
    "php",
    "markdown",
    "python",
    "sh",
    "c++",
    "__proto__",
    "constructor",
    "none",
)
KINDS = "all => all.map((one) => `${one.className} ${one.textContent}`)"
SILENT = """window.Worker = class extends EventTarget {
  constructor() { super(); window.silent = this; }
  postMessage({ text }) { (window.asked ??= []).push(text); }
  terminate() { window.ended = (window.ended ?? 0) + 1; }
}"""
"""One that thinks for ever about each block."""
LOADED = "window.silent.dispatchEvent(new MessageEvent('message', { data: null }))"
LONG = """async () => {
  const { colour } = await import("/files/highlight.js");
  const root = document.createElement("div");
  const code = root.appendChild(document.createElement("code"));
  code.dataset.language = "python";
  code.textContent = "x".repeat(20_001);
  colour(root);
}"""
NONE = "window.Worker = class { constructor() { throw new Error('none begins'); } }"


def fenced(code: str, language: str) -> str:
    return f"```{language}\n{code}\n```"


async def texts(answer: Any) -> list[str]:
    return await answer.locator("pre code").evaluate_all("all => all.map((one) => one.textContent)")


async def test_it_has_colours_and_the_library_comes_with_the_first_block(ada: Person, bot: Scripted) -> None:
    bot.answers |= {
        "plain": f"No `code` of a language.\n\n{fenced(CODE, '')}",
        "code": fenced(CODE, "python"),
    }
    answer = await ada.ask("plain")
    assert await texts(answer) == [CODE]
    assert ada.page.workers == []
    answer = await ada.ask("code")
    await answer.locator("pre .c-number").wait_for()
    await until(lambda: len(ada.page.workers) == 1)
    kinds = await answer.locator("pre span").evaluate_all(KINDS)
    wanted = ("c-key def", "c-name half", 'c-note # of "it"', 'c-text "a < b"', "c-key return", "c-number 2")
    assert {*wanted} <= {*kinds}
    assert await texts(answer) == [CODE]
    assert await ada.page.locator("pre").first.locator("span").count() == 0, "nobody said what language it is"
    await ada.page.goto(f"{bot.address}/rate")
    await ada.page.locator(".card pre .c-number").wait_for()


async def test_hostile_code_stays_text_in_every_language(ada: Person, bot: Scripted) -> None:
    bot.answers["hostile"] = "\n\n".join(
        [*(fenced(HOSTILE, language) for language in LANGUAGES), fenced(CODE, "python")]
    )
    answer = await ada.ask("hostile")
    await answer.locator("pre").last.locator(".c-number").wait_for()  # they are coloured in their order
    assert await texts(answer) == [*([HOSTILE] * len(LANGUAGES)), CODE]
    tags = await answer.locator("pre code *").evaluate_all(
        "all => [...new Set(all.map((one) => one.tagName))]"
    )
    assert tags == ["SPAN"]
    assert await answer.locator("pre").first.locator(".c-key").count() > 0, "it was looked at as HTML"
    unknown = answer.locator("pre").nth(LANGUAGES.index("none"))
    assert await unknown.locator("span").count() == 0
    assert await ada.page.evaluate("window.broken") is None


async def test_what_takes_too_long_is_ended_and_what_is_too_long_not_begun(
    ada: Person, bot: Scripted
) -> None:
    bot.answers["slow"] = f"{fenced(CODE, 'python')}\n\n{fenced('y = 2', 'python')}"
    await ada.page.add_init_script(SILENT)
    await ada.page.clock.install()
    await ada.page.reload()
    answer = await ada.ask("slow")
    await ada.page.evaluate(LONG)  # the chat has it in two messages, other pages in one
    await ada.page.clock.run_for(10_000)
    assert await ada.page.evaluate("window.ended") is None, "its library may come slowly"
    for _ in range(2):
        await ada.page.evaluate(LOADED)
        await ada.page.clock.run_for(5000)
    asked, ended = await ada.page.evaluate("[window.asked, window.ended]")
    assert (asked, ended) == ([CODE, "y = 2"], 2)
    assert await texts(answer) == [CODE, "y = 2"]


async def test_where_no_worker_begins_code_stays_the_text_that_it_is(ada: Person, bot: Scripted) -> None:
    bot.answers["none"] = f"{fenced(CODE, 'python')}\n\n{fenced('y = 2', 'python')}"
    await ada.page.add_init_script(NONE)
    await ada.page.reload()
    answer = await ada.ask("none")
    assert await texts(answer) == [CODE, "y = 2"]
    assert await answer.locator("pre code span").count() == 0
