// SPDX-License-Identifier: Apache-2.0
// What goes over Slack's wires, by Slack's own type definitions. schema.mjs makes JSON Schema of it.

import type * as bolt from '@slack/bolt';
import type * as types from '@slack/types';
import type * as web from '@slack/web-api';

/** What an app sends to the Web API. */
export interface Arguments {
  'agents.sessions.rename': web.AgentsSessionsRenameArguments;
  'agents.sessions.setStatus': web.AgentsSessionsSetStatusArguments;
  'apps.connections.open': web.AppsConnectionsOpenArguments;
  'assistant.threads.setStatus': web.AssistantThreadsSetStatusArguments;
  'assistant.threads.setSuggestedPrompts': web.AssistantThreadsSetSuggestedPromptsArguments;
  'assistant.threads.setTitle': web.AssistantThreadsSetTitleArguments;
  'auth.test': web.AuthTestArguments;
  'bots.info': web.BotsInfoArguments;
  'chat.appendStream': web.ChatAppendStreamArguments;
  'chat.delete': web.ChatDeleteArguments;
  'chat.postEphemeral': web.ChatPostEphemeralArguments;
  'chat.postMessage': web.ChatPostMessageArguments;
  'chat.startStream': web.ChatStartStreamArguments;
  'chat.stopStream': web.ChatStopStreamArguments;
  'chat.update': web.ChatUpdateArguments;
  'conversations.history': web.ConversationsHistoryArguments;
  'conversations.info': web.ConversationsInfoArguments;
  'conversations.members': web.ConversationsMembersArguments;
  'conversations.open': web.ConversationsOpenArguments;
  'conversations.replies': web.ConversationsRepliesArguments;
  'reactions.add': web.ReactionsAddArguments;
  'reactions.get': web.ReactionsGetArguments;
  'reactions.remove': web.ReactionsRemoveArguments;
  'usergroups.list': web.UsergroupsListArguments;
  'usergroups.users.list': web.UsergroupsUsersListArguments;
  'users.info': web.UsersInfoArguments;
  'views.open': web.ViewsOpenArguments;
  'views.publish': web.ViewsPublishArguments;
  'views.update': web.ViewsUpdateArguments;
}

/** What the Web API answers. */
export interface Responses {
  'agents.sessions.rename': web.AgentsSessionsRenameResponse;
  'agents.sessions.setStatus': web.AgentsSessionsSetStatusResponse;
  'apps.connections.open': web.AppsConnectionsOpenResponse;
  'assistant.threads.setStatus': web.AssistantThreadsSetStatusResponse;
  'assistant.threads.setSuggestedPrompts': web.AssistantThreadsSetSuggestedPromptsResponse;
  'assistant.threads.setTitle': web.AssistantThreadsSetTitleResponse;
  'auth.test': web.AuthTestResponse;
  'bots.info': web.BotsInfoResponse;
  'chat.appendStream': web.ChatAppendStreamResponse;
  'chat.delete': web.ChatDeleteResponse;
  'chat.postEphemeral': web.ChatPostEphemeralResponse;
  'chat.postMessage': web.ChatPostMessageResponse;
  'chat.startStream': web.ChatStartStreamResponse;
  'chat.stopStream': web.ChatStopStreamResponse;
  'chat.update': web.ChatUpdateResponse;
  'conversations.history': web.ConversationsHistoryResponse;
  'conversations.info': web.ConversationsInfoResponse;
  'conversations.members': web.ConversationsMembersResponse;
  'conversations.open': web.ConversationsOpenResponse;
  'conversations.replies': web.ConversationsRepliesResponse;
  'reactions.add': web.ReactionsAddResponse;
  'reactions.get': web.ReactionsGetResponse;
  'reactions.remove': web.ReactionsRemoveResponse;
  'usergroups.list': web.UsergroupsListResponse;
  'usergroups.users.list': web.UsergroupsUsersListResponse;
  'users.info': web.UsersInfoResponse;
  'views.open': web.ViewsOpenResponse;
  'views.publish': web.ViewsPublishResponse;
  'views.update': web.ViewsUpdateResponse;
}

/** What the Events API tells. A message's subtype is there or it is not; it is never undefined. */
export interface Events {
  app_home_opened: types.AppHomeOpenedEvent;
  app_mention: types.AppMentionEvent;
  message: Omit<types.GenericMessageEvent, 'subtype'>;
  'message.file_share': types.FileShareMessageEvent;
  'message.message_changed': Omit<types.MessageChangedEvent, 'message' | 'previous_message'>;
  'message.message_deleted': Omit<types.MessageDeletedEvent, 'previous_message'>;
  reaction_added: types.ReactionAddedEvent;
  reaction_removed: types.ReactionRemovedEvent;
}

/** What an app is sent of its buttons, views, shortcuts and commands. */
export interface Interactions {
  block_actions: bolt.BlockAction<bolt.ButtonAction> | bolt.BlockAction<bolt.BlockElementAction>;
  message_action: bolt.MessageShortcut;
  slash_commands: bolt.SlashCommand;
  view_closed: bolt.ViewClosedAction;
  view_submission: bolt.ViewSubmitAction;
}
