// SPDX-License-Identifier: Apache-2.0
// Telegram's Bot API on loopback: npm telegram-test-api, with what it lacks added.
//
// The package has the storage, the HTTP server and the shape of the methods. Added here, after
// core.telegram.org/bots/api: getUpdates with offset, long polling, allowed_updates and 409;
// answers of the right shape (is_bot, dates in seconds, the real chat); message_reaction with the
// administrator rule; privacy mode; callback queries; 401, 429 and the 400s that a bot meets.
// People are moved over /control/* by tests/connectors/telegram/peer.py.
//
// Started as `node telegram_peer.mjs TOKEN`; prints `{"port": N}` when it listens. It ends when
// its standard input does, so that it never outlives the test that started it.

import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const TelegramServer = require('telegram-test-api');
const express = createRequire(require.resolve('telegram-test-api'))('express');

const BOT = { id: 4200001, is_bot: true, first_name: 'Good Bot', username: 'the_good_bot' };
const DEFAULT_UPDATES = ['message', 'edited_message', 'callback_query', 'my_chat_member'];
const CONFLICT = 'Conflict: terminated by other getUpdates request; '
  + 'make sure that only one bot instance is running';

class Refusal extends Error {
  constructor(code, description, parameters) {
    super(description);
    this.body = { ok: false, error_code: code, description, ...(parameters && { parameters }) };
  }
}

const seconds = () => Math.floor(Date.now() / 1000);

/** One list of commands for each scope and language. */
const menu = ({ scope, language_code }) => `${scope?.type ?? 'default'} ${language_code ?? ''}`;

const RIGHTS = Object.fromEntries([
  'can_be_edited', 'is_anonymous', 'can_manage_chat', 'can_delete_messages', 'can_manage_video_chats',
  'can_restrict_members', 'can_promote_members', 'can_change_info', 'can_invite_users',
  'can_post_stories', 'can_edit_stories', 'can_delete_stories',
].map((right) => [right, false]));

const STRINGS = ['text', 'callback_query_id'];

/** Form fields as Telegram reads them: whatever is JSON there is JSON here. */
function decode(body) {
  const decoded = {};
  for (const [name, value] of Object.entries(body)) {
    const json = !STRINGS.includes(name) && /^([[{]|-?\d+$|true$|false$)/.test(value);
    decoded[name] = json ? JSON.parse(value) : value;
  }
  return decoded;
}

/** Entities that a client's server would find in a person's text. */
function entitiesOf(text) {
  const found = [];
  for (const match of text.matchAll(/(^\/[a-z0-9_]+(?:@\w+)?)|(?<!\w)(@\w+)/gi)) {
    const type = match[1] ? 'bot_command' : 'mention';
    found.push({ type, offset: match.index, length: match[0].length });
  }
  return found.length ? { entities: found } : {};
}

class TelegramPeer extends TelegramServer {
  constructor(token) {
    super({ host: '127.0.0.1', storeTimeout: 100000 });
    this.config.port = 0;
    this.token = token;
    this.poll = null;
    this.control_reset();
    const inner = this.webServer;
    this.webServer = express();
    this.webServer.use(express.json(), express.urlencoded({ extended: true }));
    this.webServer.post('/bot:token/:method', (req, res) => this.serve(req, res));
    this.webServer.post('/control/:name', async (req, res) => {
      res.json((await this[`control_${req.params.name}`](req.body)) ?? {});
    });
    this.webServer.use(inner);
  }

  async serve(req, res) {
    const params = decode(req.body);
    const { method, token } = req.params;
    try {
      if (token !== this.token) throw new Refusal(401, 'Unauthorized');
      this.calls.push({ method, params });
      const failure = this.failures.find((f) => f.method === method && f.times-- > 0);
      if (failure) throw new Refusal(failure.code, failure.description, failure.parameters);
      if (!this[`bot_${method}`]) throw new Refusal(404, 'Not Found');
      res.json({ ok: true, result: await this[`bot_${method}`](params, res) });
    } catch (error) {
      if (!error.body) throw error;
      res.status(error.body.error_code).json(error.body);
    }
  }

  // The Bot API

  bot_getMe() {
    return { ...BOT, can_join_groups: true, can_read_all_group_messages: this.readsGroups, supports_inline_queries: false };
  }

  bot_setMyCommands({ commands, ...where }) { this.menus.set(menu(where), commands); return true; }

  bot_getMyCommands(where) { return this.menus.get(menu(where)) ?? []; }

  bot_deleteMyCommands(where) { this.menus.delete(menu(where)); return true; }

  bot_setWebhook({ url }) { this.webhook = url; return true; }

  bot_deleteWebhook() { this.webhook = ''; return true; }

  bot_getChatMember({ chat_id }) {
    return { status: this.chat(chat_id).admin ? 'administrator' : 'member', user: BOT, ...RIGHTS };
  }

  bot_getWebhookInfo() {
    return { url: this.webhook, has_custom_certificate: false, pending_update_count: 0, ...this.webhookInfo };
  }

  bot_sendChatAction(params) { this.chat(params.chat_id); return true; }

  async bot_getUpdates({ offset = 0, timeout = 0, limit = 100, allowed_updates }, res) {
    if (allowed_updates) this.allowed = allowed_updates.length ? allowed_updates : DEFAULT_UPDATES;
    this.poll?.conflict();
    const kept = this.storage.userMessages;
    this.storage.userMessages = kept.filter((update) => update.updateId >= offset);
    const deadline = Date.now() + timeout * 1000;
    while (!this.storage.userMessages.length && Date.now() < deadline && !res.closed) {
      await new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, deadline - Date.now());
        const wake = () => { clearTimeout(timer); resolve(); };
        this.poll = { wake, conflict: () => reject(new Refusal(409, CONFLICT)) };
        res.once('close', wake);
      }).finally(() => { this.poll = null; });
    }
    if (res.closed) return [];
    const batch = this.updates().slice(0, limit);
    if (batch.length) this.handedOut = batch.at(-1).update_id;
    this.emit('HandedOut');
    return batch;
  }

  bot_sendMessage(params) {
    const chat = this.chat(params.chat_id);
    this.check(params);
    const { message_id } = this.addBotMessage(params, this.token);
    const post = this.post(chat.id, message_id);
    post.date = seconds();
    return this.asMessage(post);
  }

  bot_editMessageText(params) {
    this.check(params);
    const post = this.post(params.chat_id, params.message_id);
    const markup = (message) => JSON.stringify(message.reply_markup ?? null);
    if (post.message.text === params.text && markup(post.message) === markup(params)) {
      throw new Refusal(400, 'Bad Request: message is not modified: specified new message content and '
        + 'reply markup are exactly the same as a current content and reply markup of the message');
    }
    delete post.message.reply_markup; // an edit without a keyboard takes it away
    delete post.message.entities;
    this.editMessageText(params);
    return { ...this.asMessage(post), edit_date: seconds() };
  }

  bot_editMessageReplyMarkup({ chat_id, message_id, reply_markup }) {
    const post = this.post(chat_id, message_id);
    if (JSON.stringify(post.message.reply_markup) === JSON.stringify(reply_markup)) {
      throw new Refusal(400, 'Bad Request: message is not modified');
    }
    this.check({ text: post.message.text, reply_markup });
    delete post.message.reply_markup;
    if (reply_markup) post.message.reply_markup = reply_markup;
    return this.asMessage(post);
  }

  bot_setMessageReaction({ chat_id, message_id, reaction = [] }) {
    const { messages } = this.chat(chat_id);
    if (!messages.has(Number(message_id))) this.post(chat_id, message_id);
    this.reactions.push({ message_id, reaction });
    return true;
  }

  bot_deleteMessage(params) {
    this.removeBotMessage(this.post(params.chat_id, params.message_id).updateId);
    return true;
  }

  bot_answerCallbackQuery({ callback_query_id, text }) {
    const user = this.queries.get(String(callback_query_id));
    if (user === undefined) throw new Refusal(400, 'Bad Request: query is too old and response timeout expired or query ID is invalid');
    this.queries.delete(String(callback_query_id));
    this.toasts.push({ user, text: text ?? '' });
    return true;
  }

  check({ text, reply_markup }) {
    if (!text?.trim()) throw new Refusal(400, 'Bad Request: message text is empty');
    if (text.length > 4096) throw new Refusal(400, 'Bad Request: message is too long');
    for (const button of reply_markup?.inline_keyboard?.flat() ?? []) {
      if (Buffer.byteLength(button.callback_data) > 64) throw new Refusal(400, 'Bad Request: BUTTON_DATA_INVALID');
    }
  }

  chat(id) {
    const chat = this.chats.get(Number(id));
    if (!chat) throw new Refusal(400, 'Bad Request: chat not found');
    return chat;
  }

  post(chatId, messageId) {
    const post = this.storage.botMessages.find(
      (m) => m.messageId === Number(messageId) && Number(m.message.chat_id) === Number(chatId),
    );
    if (!post) throw new Refusal(400, 'Bad Request: message to edit not found');
    return post;
  }

  asMessage({ messageId, message, date }) {
    const { chat_id, text, entities, reply_markup, message_thread_id } = message;
    return {
      message_id: messageId, date, from: BOT, chat: this.chat(chat_id).chat, text,
      ...(entities && { entities }),
      ...(reply_markup?.inline_keyboard && { reply_markup }),
      ...(message_thread_id && { message_thread_id, is_topic_message: true }),
    };
  }

  updates() {
    return this.storage.userMessages.map(({ updateId, payload }) => ({ update_id: updateId, ...payload }));
  }

  deliver(kind, payload) {
    if (!this.allowed.includes(kind)) return;
    this.addUserUpdate({ ...this.getCommonFields(this.token), payload: { [kind]: payload } });
    this.poll?.wake();
  }

  // What tests do and see

  /** A new day, for the next test. */
  control_reset() {
    this.poll?.wake();
    this.storage.userMessages = [];
    this.storage.botMessages = [];
    this.updateId = 730000001; // "from a certain positive number"
    this.messageId = 1;
    this.chats = new Map();
    this.allowed = DEFAULT_UPDATES;
    this.calls = [];
    this.toasts = [];
    this.handedOut = 0;
    this.failures = [];
    this.queries = new Map();
    this.menus = new Map();
    this.reactions = [];
    this.webhook = '';
    this.webhookInfo = {};
    this.readsGroups = false;
  }

  /** What is set elsewhere: `webhook` by another program, `readsGroups` with @BotFather. */
  control_set(what) { Object.assign(this, what); }

  control_chat({ chat, admin = false }) {
    this.chats.set(chat.id, { id: chat.id, chat, admin, messages: new Map() });
  }

  control_message({ chat_id, user, text, reply_to, extra = {} }) {
    const { chat, admin, messages } = this.chat(chat_id);
    const message = {
      message_id: this.messageId++, date: seconds(), chat, from: user, text, ...entitiesOf(text), ...extra,
    };
    if (!text) delete message.text; // what is attached stands alone
    const ours = reply_to && this.storage.botMessages.find((m) => m.messageId === Number(reply_to));
    if (reply_to) message.reply_to_message = ours ? this.asMessage(ours) : messages.get(Number(reply_to));
    messages.set(message.message_id, message);
    const meant = ours || text.startsWith('/') || text.toLowerCase().includes(`@${BOT.username}`);
    // Privacy mode: a bot that is no administrator sees only what is meant for it.
    if (chat.type === 'private' || admin || meant) this.deliver('message', message);
    return { message_id: message.message_id };
  }

  control_reaction({ chat_id, user, message_id, old = [], added = [] }) {
    const { chat, admin } = this.chat(chat_id);
    const types = (list) => list.map((emoji) => ({ type: 'emoji', emoji }));
    if (chat.type !== 'private' && !admin) return;
    this.deliver('message_reaction', {
      chat, message_id: Number(message_id), user, date: seconds(),
      old_reaction: types(old), new_reaction: types(added),
    });
  }

  control_press({ chat_id, user, message_id, data }) {
    const id = String(9000000 + this.callbackId++);
    this.queries.set(id, user.id);
    this.deliver('callback_query', {
      id, from: user, chat_instance: `-${chat_id}77`, data,
      message: this.asMessage(this.post(chat_id, message_id)),
    });
  }

  /** Our own reactions, in their order. */
  control_reactions() { return { reactions: this.reactions }; }

  /** Somebody else's menu in one place. */
  control_menu({ commands, ...where }) { this.menus.set(menu(where), commands); }

  /** The message that opened a person's keyboard last. */
  control_prompt({ chat_id }) {
    const asked = this.storage.botMessages.filter(
      ({ message }) => Number(message.chat_id) === chat_id && message.reply_markup?.force_reply,
    );
    return { message_id: asked.at(-1)?.messageId ?? 0 };
  }

  control_posts({ chat_id }) {
    const posts = this.storage.botMessages.filter((m) => Number(m.message.chat_id) === chat_id);
    return { posts: posts.map((post) => this.asMessage(post)) };
  }

  control_raw({ kind, payload }) { this.deliver(kind, payload); }

  control_updates() { return { updates: this.updates() }; }

  /** What Telegram may do after a week without updates. */
  control_renumber({ update_id }) {
    this.storage.userMessages = [];
    this.updateId = update_id;
  }

  /** Answers once the newest update has been handed to the bot. */
  async control_delivered() {
    while (this.storage.userMessages.length && this.handedOut < this.updateId - 1) {
      await new Promise((resolve) => { this.once('HandedOut', resolve); });
    }
  }

  control_toasts() { return { toasts: this.toasts }; }

  control_pending() { return { pending: this.storage.userMessages.map((u) => u.updateId) }; }

  control_calls() { return { calls: this.calls }; }

  control_fail(failure) { this.failures.push({ times: 1, ...failure }); }
}

const peer = new TelegramPeer(process.argv[2]);
await peer.start();
peer.server.keepAliveTimeout = 0; // a test may pause for longer, and ask on the same connection then
console.log(JSON.stringify({ port: peer.server.address().port, bot: BOT }));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
