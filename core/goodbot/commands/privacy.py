"""enable, disable (channels); share (private chats)."""

from __future__ import annotations

from goodbot.authorization import Grant, person
from goodbot.commands.base import Call, Command, Result
from goodbot.errors import UsageError
from goodbot.events import ChannelKind
from goodbot.store import access


def notice(days: float) -> str:
    """What a channel is told once, when an owner switches the bot on there."""
    return (
        "I answer here when I am mentioned or replied to. What is said to me and my answer stay on "
        f"my owner's machine; answers that nobody rates are deleted after {days:g} days. "
        "Ratings by the people my owner has named train my local model. Nothing leaves that machine."
    )


async def enable(call: Call) -> Result:
    s, channel = call.services, call.event.channel
    if channel.kind is not ChannelKind.SHARED:
        raise UsageError(
            "only a group or a channel is enabled; in a private chat, name the person in the config"
        )
    fresh = await s.store.write(
        lambda db: access.enable_channel(db, channel, person(call.user), s.clock.now())
    )
    return Result(text=notice(s.config.privacy.unrated_days) if fresh else "I am on here already.")


async def disable(call: Call) -> Result:
    channel = call.event.channel
    done = await call.services.store.write(lambda db: access.disable_channel(db, channel))
    return Result(text="I am off here." if done else "I was not on here.")


async def share(call: Call) -> Result:
    if call.args not in (("on",), ("off",)):
        raise UsageError(
            "say `share on` or `share off`: whether your private chats may train what others talk to"
        )
    on = call.args == ("on",)
    s = call.services
    await s.store.write(lambda db: access.set_share(db, person(call.user), on, s.clock.now()))
    s.scheduler.wake()
    return Result(text=f"Your private chats {'may' if on else 'do not'} train what others talk to.")


COMMANDS = (
    Command(name="enable", grant=Grant.ADMINISTER, run=enable, summary="answer in this channel"),
    Command(
        name="disable", grant=Grant.ADMINISTER, run=disable, summary="be silent in this channel"
    ),
    Command(
        name="share",
        grant=Grant.TALK,
        run=share,
        summary="whether your private chats may train what others talk to",
        usage="on|off",
    ),
)
