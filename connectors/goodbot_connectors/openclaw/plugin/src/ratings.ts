// SPDX-License-Identifier: Apache-2.0
// Buttons, commands and reactions, as what goodbot takes.

import { randomUUID } from "node:crypto";
import type { Answer, Answers } from "./answers.js";
import type { Link } from "./link.js";
import { chatId } from "./places.js";
import { type Reaction } from "./reactions.js";
import {
  type Command, type Json, type Logger, type Outgoing, type Place, type Press, object, text,
} from "./types.js";

export const NAMESPACE = "goodbot";
const GOOD = "👍 Good";
const BAD = "👎 Bad";
const DOWN = "goodbot is not running at the moment; what you said is kept and counts when it is back.";
const DOWN_COMMAND =
  "goodbot does not answer. Start it with `goodbot run` where it is installed. If it had heard you, it may still" +
  " be done: look at `/rl status` first, then say that again.";
const WHICH =
  "I do not know which answer you mean, so nothing was rated: press a button under it, or react to it. If it is" +
  " not there yet, wait until it is.";
const NOBODY = "Say that in a chat: here I cannot tell who you are.";
const THUMBS = /^(good|yes|y|\+1?|👍|up|bad|no|n|-1?|👎|down)$/u;
const STARS = /^(stars?|rate)$/;
const SAYS = /^(reason|because|comment|better|instead|correct)$/;
const COMMAND_MS = 15_000;

/** The buttons under an answer. */
export function buttons(answer: Answer): Json {
  const button = (label: string, mark: string) => ({
    label,
    action: { type: "callback", value: `${NAMESPACE}:${mark}:${answer.key}` },
  });
  return { type: "buttons", buttons: [button(GOOD, "g"), button(BAD, "b")] };
}

function outgoing(type: Outgoing["type"], id: string, place: Place, sender: string, more: Json): Outgoing {
  return { id, type, at: Date.now(), ...place, sender, ...more };
}

export class Ratings {
  private quiet = false;

  constructor(
    private readonly answers: Answers,
    private readonly link: Link,
    private readonly logger: Logger,
    private readonly capture: (answer: Answer, message: string) => void,
  ) {}

  /** Somebody has pressed a button of ours. */
  async press(press: Press): Promise<Json> {
    const told = press.callback ?? press.interaction ?? {};
    const [mark, runKey = ""] = text(told.payload).split(":");
    const sender = text(press.senderId);
    if ((mark !== "g" && mark !== "b") || !runKey || !sender) return { handled: true };
    if (press.auth?.isAuthorizedSender === false) return { handled: true };
    const message = text(told.messageId) || text(object(told)["messageTs"]);
    const place: Place = {
      channel: press.channel,
      account: text(press.accountId) || "default",
      chat: chatId(press.channel, text(object(told)["chatId"]) || press.conversationId),
      group: press.isGroup !== false,
    };
    const answer = this.answers.pressed(runKey);
    if (answer) this.capture(answer, message); // what is rated must be known before it is
    const name = answer?.name || this.answers.named(place, message) || `run:${runKey}`;
    const id = `press:${text(press.callbackId) || text(press.interactionId) || randomUUID()}`;
    const receipt = await this.link.send(
      outgoing("rating", id, place, sender, { name, value: mark === "g" ? 1 : -1 }),
    );
    if (receipt?.outcome === "accepted") await this.tick(press, runKey, mark, place.group);
    else await this.say(press, receipt ? receipt.text : this.down(), place.group);
    return { handled: true };
  }

  /** Somebody has typed `/rl …` or `/rladmin …`. */
  async command(command: Command, admin: boolean): Promise<Json> {
    const sender = text(command.senderId);
    const channel = text(command.channel);
    const chat = chatId(channel, command.from ?? command.to);
    if (!sender || !channel || !chat) return { text: NOBODY };
    const place: Place = {
      channel, account: text(command.accountId) || "default", chat, group: chat !== sender,
    };
    const words = text(command.args).trim();
    const more: Json = { words, admin, owner: admin && isOwner(command) };
    if (needsAnswer(words)) {
      const last = this.answers.last(place, sender);
      if (!last?.name) return { text: WHICH };
      more["name"] = last.name;
    }
    const id = `command:${randomUUID()}`;
    const receipt = await this.link.send(outgoing("command", id, place, sender, more), COMMAND_MS);
    return { text: receipt ? receipt.text || "👌" : DOWN_COMMAND };
  }

  /** Somebody has reacted to a message, or has taken that back. */
  react(id: string, reaction: Reaction): void {
    const { channel, message, sender, emoji, added } = reaction;
    const accounts = this.answers.accountsOf(channel);
    const [account = "default"] = accounts;
    if (accounts.length > 1) {
      // The note does not say to which of our accounts it came.
      const known = accounts.filter((one) => this.answers.chatOf(channel, one, message));
      if (known.length !== 1) return this.logger.warn(`a reaction on ${channel} could be on two answers: left out`);
      return this.reacted(id, { ...reaction }, known[0] ?? account);
    }
    if (message && sender && emoji) this.reacted(id, { ...reaction, added }, account);
  }

  private reacted(id: string, reaction: Reaction, account: string): void {
    const { channel, message, sender, emoji, added } = reaction;
    const chat = chatId(channel, reaction.chat) || this.answers.chatOf(channel, account, message);
    if (!chat) return; // not on an answer that we know of
    const place: Place = { channel, account, chat, group: chat !== sender };
    const name = this.answers.named(place, message);
    void this.link.send(
      outgoing("reaction", `reaction:${id}`, place, sender, { name, emoji, added }),
    );
  }

  /** Why nothing was said of a rating: once while goodbot is away, not at each press. */
  private down(): string {
    if (this.link.well) this.quiet = false;
    if (this.quiet) return "";
    this.quiet = true;
    return DOWN;
  }

  /** Show a person that it counts, where nobody else sees it: a tick on the button. */
  private async tick(press: Press, runKey: string, mark: string, group: boolean): Promise<void> {
    const button = (label: string, its: string) => ({
      text: its === mark ? `${label} ✓` : label,
      callback_data: `${NAMESPACE}:${its}:${runKey}`,
    });
    try {
      if (press.channel === "telegram" && !group) {
        await press.respond?.editButtons?.({ buttons: [[button(GOOD, "g"), button(BAD, "b")]] });
      } else await press.respond?.acknowledge?.();
    } catch {
      // the same button again: it is ticked already
    }
  }

  private async say(press: Press, words: string, group: boolean): Promise<void> {
    if (!words || group) return; // a group need not hear of one person's rating
    try {
      await press.respond?.reply?.({ text: words });
    } catch {
      this.logger.warn("what became of a rating could not be said in the chat");
    }
  }
}

/** Whether a command is about an answer and does not say which; `good TURN` does. */
function needsAnswer(words: string): boolean {
  const [first = "", ...rest] = words.toLowerCase().split(/\s+/);
  return (
    (THUMBS.test(first) && rest.length === 0) || (STARS.test(first) && rest.length < 2) || SAYS.test(first)
  );
}

function isOwner(command: Command): boolean {
  return command.senderIsOwner === true || (command.gatewayClientScopes ?? []).includes("operator.admin");
}
