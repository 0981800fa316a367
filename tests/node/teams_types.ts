// SPDX-License-Identifier: Apache-2.0
// What goes over a Teams bot's wires, by Microsoft's own type definitions. schema.mjs makes JSON Schema of it.

import type * as api from '@microsoft/teams.api';

/** An activity without the methods that Microsoft's class has; on the wire nobody has to have a role. */
type Account = Omit<api.Account, 'role'> & { role?: api.Role };
type Entity =
  | api.AIMessageEntity
  | api.ClientInfoEntity
  | api.QuotedReplyEntity
  | api.StreamInfoEntity
  | (Omit<api.MentionEntity, 'mentioned'> & { mentioned: Account });
interface Head {
  id: string;
  serviceUrl: string;
  timestamp: Date;
  locale?: string;
  localTimestamp: Date;
  channelId: 'msteams';
  from: Account & { aadObjectId: string };
  conversation: api.ConversationAccount & { tenantId: string };
  recipient: Account;
  replyToId?: string;
  entities?: Entity[];
  channelData: api.ChannelData & { tenant: api.TenantInfo } & Untyped;
  localTimezone?: string; // no type has it
}

/** What channelData has on the wire, and in no type. */
interface Untyped {
  teamsChannelId?: string;
  teamsTeamId?: string;
  source?: { name: string };
  legacy?: { replyToId: string };
}

type Words = Pick<api.IMessageActivity, 'type' | 'text' | 'textFormat' | 'attachments'>;
type Feedback = api.IMessageSubmitActionInvokeActivity;
type FetchTask = api.IMessageFetchTaskInvokeActivity;

/** What Teams tells a bot. */
export interface Activities {
  message: Head & Words;
  'message.submit': Head & { type: 'message'; replyToId: string; value: object };
  messageUpdate: Head & Omit<Words, 'type'> & { type: 'messageUpdate' };
  messageReaction: Head & { replyToId: string } & Pick<
    api.IMessageReactionActivity, 'type' | 'reactionsAdded' | 'reactionsRemoved'
  >;
  conversationUpdate: Head & { type: 'conversationUpdate'; membersAdded?: Account[]; membersRemoved?: Account[] };
  installationUpdate: Head & { type: 'installationUpdate'; action: 'add' | 'remove' };
  'message/submitAction': Head & { replyToId: string } & Pick<Feedback, 'type' | 'name' | 'value'>;
  'message/fetchTask': Head & { replyToId: string } & Pick<FetchTask, 'type' | 'name' | 'value'>;
  'adaptiveCard/action': Head & { replyToId: string } & Pick<
    api.IAdaptiveCardActionInvokeActivity, 'type' | 'name' | 'value'
  >;
  'task/fetch': Head & { type: 'invoke'; name: 'task/fetch'; value: api.TaskModuleRequest };
  'task/submit': Head & { type: 'invoke'; name: 'task/submit'; value: api.TaskModuleRequest };
}

/** What an SDK adds to all that a bot sends. */
interface Reference {
  id?: string;
  timestamp?: Date;
  localTimestamp?: Date;
  locale?: string;
  serviceUrl?: string;
  channelId?: 'msteams';
  from?: Account;
  conversation?: Partial<api.ConversationAccount>;
  recipient?: Account;
  replyToId?: string;
  entities?: Entity[];
  channelData?: api.ChannelData;
}

type Sent = Partial<
  Pick<
    api.IMessageActivity,
    'text' | 'inputHint' | 'summary' | 'textFormat' | 'attachmentLayout' | 'attachments' | 'suggestedActions' |
    'importance' | 'deliveryMode' | 'value'
  >
>;
type Message = Reference & Sent & { type: 'message' };
type Typing = Reference & { type: 'typing'; text?: string; textFormat?: api.TextFormat; inputHint?: api.InputHint };

/** What a bot sends to the Bot Connector. */
export interface Calls {
  create: {
    isGroup?: boolean;
    bot?: Partial<Account>;
    members?: Partial<Account>[];
    tenantId?: string;
    activity?: Message;
    channelData?: api.ChannelData;
  };
  send: Message | Typing;
  reply: Message | Typing;
  update: Message;
}

/** What the Bot Connector answers. */
export interface Answers {
  create: { id: string; activityId?: string };
  send: { id?: string };
  reply: { id?: string };
  update: api.Resource;
  member: api.TeamsChannelAccount;
  members: api.TeamsChannelAccount[];
  paged_members: { members: api.TeamsChannelAccount[]; continuationToken?: string };
}

/** Cards are checked by teams_cards.mjs: their types are too large to be made schemas of. */
type Card = { type: 'AdaptiveCard'; [name: string]: unknown };
interface Task {
  task?:
    | { type: 'message'; value: string }
    | { type: 'continue'; value: Window };
}
type Window = api.BaseTaskModuleTaskInfo & {
  card: { contentType: 'application/vnd.microsoft.card.adaptive'; content: Card };
};

/** What a bot answers somebody who has pressed. */
export interface Responses {
  'adaptiveCard/action': api.AdaptiveCardActionMessageResponse | {
    statusCode: 200;
    type: 'application/vnd.microsoft.card.adaptive';
    value: Card;
  };
  'message/fetchTask': Task;
  'message/submitAction': object;
  'task/fetch': Task;
  'task/submit': Task;
}
