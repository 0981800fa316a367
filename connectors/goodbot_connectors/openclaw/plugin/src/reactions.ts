// SPDX-License-Identifier: Apache-2.0
// Reactions are no hook: channels leave them as notes for the next prompt, and the note's key says what
// happened. Chats may have a colon in their ids, so keys are read from the right.

export interface Reaction {
  channel: string;
  added: boolean;
  /** Empty where the key does not say it. */
  chat: string;
  message: string;
  sender: string;
  emoji: string;
}

/** What a note is about; nothing for one that is no reaction. */
export function parse(contextKey: unknown): Reaction | undefined {
  if (typeof contextKey !== "string" || contextKey.length > 1000) return undefined;
  const parts = contextKey.split(":");
  const [channel = "", kind = "", ...rest] = parts;
  if (kind !== "reaction") return undefined;
  if (channel === "telegram") return telegram(rest);
  if (channel === "discord") return discord(rest);
  if (channel === "slack") return slack(rest);
  if (channel === "msteams") return teams(rest);
  return undefined;
}

function whole(reaction: Reaction): Reaction | undefined {
  return reaction.message && reaction.sender && reaction.emoji ? reaction : undefined;
}

/** `add:<chat>:<message>:<user>:<emoji>`; what was taken away is not told. */
function telegram(rest: string[]): Reaction | undefined {
  const [verb, ...more] = rest;
  if (more.length < 4 || (verb !== "add" && verb !== "remove")) return undefined;
  const [message = "", sender = "", emoji = ""] = more.slice(-3);
  const chat = more.slice(0, -3).join(":");
  return whole({ channel: "telegram", added: verb === "add", chat, message, sender, emoji });
}

/** `<added|removed>:<message>:<user>:<emoji>[:burst]`; ids of messages are unique there. */
function discord(rest: string[]): Reaction | undefined {
  const [verb, message = "", sender = "", ...words] = rest;
  if (verb !== "added" && verb !== "removed") return undefined;
  if (words.length > 1 && words[words.length - 1] === "burst") words.pop();
  const emoji = words.join(":");
  return whole({ channel: "discord", added: verb === "added", chat: "", message, sender, emoji });
}

/** `[team:]<added|removed>:<channel>:<ts>:<user>:<name>:<eventId>`; a name may have `::skin-tone-2`. */
function slack(rest: string[]): Reaction | undefined {
  const at = rest[0] === "added" || rest[0] === "removed" ? 0 : 1;
  const [verb, chat = "", message = "", sender = "", ...words] = rest.slice(at);
  if ((verb !== "added" && verb !== "removed") || words.length < 2) return undefined;
  const emoji = words.slice(0, -1).join(":");
  return whole({ channel: "slack", added: verb === "added", chat, message, sender, emoji });
}

/** `<conversation>:<message>:<sender>:<type>:<direction>`; conversations and senders have colons. */
function teams(rest: string[]): Reaction | undefined {
  const direction = rest[rest.length - 1] ?? "";
  const emoji = rest[rest.length - 2] ?? "";
  if (rest.length < 5 || !/^(added?|removed?)$/.test(direction)) return undefined;
  // A sender is `29:<id>`, a message's id is digits.
  const body = rest.slice(0, -2);
  const prefixed = /^\d{1,3}$/.test(body[body.length - 2] ?? "") && /^\d{6,}$/.test(body[body.length - 3] ?? "");
  const sender = body.slice(prefixed ? -2 : -1).join(":");
  const left = body.slice(0, prefixed ? -2 : -1);
  const message = left[left.length - 1] ?? "";
  const chat = left.slice(0, -1).join(":");
  return whole({ channel: "msteams", added: direction.startsWith("add"), chat, message, sender, emoji });
}
