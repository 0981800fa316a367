// SPDX-License-Identifier: Apache-2.0
// What goes to goodbot, and the parts of OpenClaw's events that we read.

export type Json = Record<string, unknown>;

/** Where a conversation is. Session keys are not: two people may share one. */
export interface Place {
  channel: string;
  account: string;
  chat: string;
  group: boolean;
}

/** One thing for goodbot; `id` names it for ever, so that it counts once however often it is sent. */
export interface Outgoing extends Json {
  id: string;
  type: "capture" | "named" | "rating" | "reaction" | "command";
  at: number;
}

/** What became of one of them. */
export interface Receipt {
  id: string;
  outcome: string;
  text: string;
}

export interface Logger {
  info(text: string): void;
  warn(text: string): void;
}

/** The second argument of hooks. */
export interface HookContext {
  runId?: string;
  sessionKey?: string;
  channel?: string;
  channelId?: string;
  accountId?: string;
  conversationId?: string;
  chatId?: string;
  senderId?: string;
  trigger?: string;
  trace?: { traceId?: string };
}

export interface Command {
  senderId?: string;
  channel?: string;
  accountId?: string;
  from?: string;
  to?: string;
  args?: string;
  senderIsOwner?: boolean;
  gatewayClientScopes?: string[];
}

export interface Press {
  channel: string;
  accountId?: string;
  callbackId?: string;
  interactionId?: string;
  conversationId?: string;
  senderId?: string;
  isGroup?: boolean;
  auth?: { isAuthorizedSender?: boolean };
  callback?: { payload?: string; messageId?: string | number; chatId?: string };
  interaction?: { payload?: string; messageId?: string | number; messageTs?: string };
  respond?: {
    reply?(answer: { text: string }): Promise<void>;
    editButtons?(answer: { buttons: Array<Array<{ text: string; callback_data: string }>> }): Promise<void>;
    acknowledge?(): Promise<void>;
  };
}

export interface Api {
  registrationMode?: string;
  pluginConfig?: Json;
  config?: Json;
  logger: Logger;
  on(hook: string, handler: (event: never, context: never) => unknown): void;
  registerCommand(command: Json): void;
  registerInteractiveHandler(handler: Json): void;
  registerService(service: Json): void;
}

export function text(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" && Number.isFinite(value) ? String(value) : "";
}

export function object(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}
