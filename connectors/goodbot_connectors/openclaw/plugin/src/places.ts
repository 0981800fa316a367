// SPDX-License-Identifier: Apache-2.0
// Chats go by several names: `telegram:42`, `telegram:group:-100`, `42`. Here they get one.

import { type HookContext, type Place, text } from "./types.js";

const KINDS = ["group:", "direct:", "dm:", "user:", "channel:", "chat:"];

/** A chat's own id, without the words before it that say of which channel and kind it is. */
export function chatId(channel: string, name: unknown): string {
  let id = text(name).trim();
  if (id.toLowerCase().startsWith(`${channel}:`)) id = id.slice(channel.length + 1);
  for (const kind of KINDS) if (id.toLowerCase().startsWith(kind)) return id.slice(kind.length);
  return id;
}

/** Whether a name says that more than two can read there. */
export function saysGroup(name: unknown): boolean {
  return /(^|:)(group|channel):/.test(text(name));
}

/** Where a run of the agent has its question from; nothing when it is from no chat. */
export function ofRun(context: HookContext): Place | undefined {
  const channel = text(context.channel);
  const chat = chatId(channel, context.chatId ?? context.channelId);
  if (!channel || !chat) return undefined;
  const group = saysGroup(context.sessionKey) || chat !== text(context.senderId);
  return { channel, account: text(context.accountId) || "default", chat, group };
}

/** Where a message came from or goes to. */
export function ofMessage(context: HookContext, to: unknown): Place | undefined {
  const channel = text(context.channelId);
  const chat = chatId(channel, context.conversationId ?? to);
  if (!channel || !chat) return undefined;
  return {
    channel,
    account: text(context.accountId) || "default",
    chat,
    group: saysGroup(context.sessionKey) || saysGroup(context.conversationId),
  };
}

export function key(...parts: string[]): string {
  return JSON.stringify(parts);
}
