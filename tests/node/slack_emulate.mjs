// SPDX-License-Identifier: Apache-2.0
// Slack's Web API by npm emulate, for what an app sends to it; no Socket Mode, no streams.
//
// Slack takes arguments in the query where emulate wants a POST with a body, and has an error for
// methods that it does not know: a small door in front of emulate does both.
// Started as `node slack_emulate.mjs TOKEN SCOPES`; prints `{"port": N, …}` when it listens, and ends
// when its standard input does.

import { createServer } from 'node:http';
import { createEmulator } from 'emulate';

const [token, scopes] = process.argv.slice(2);
const BOT = { bot_id: 'B0G00DB0T', bot_user_id: 'U0G00DB0T', app_id: 'A0G00DB0T' };

const slack = await createEmulator({
  service: 'slack',
  port: 0,
  seed: {
    slack: {
      team: { name: 'Good Bots', domain: 'goodbot' },
      users: [{ name: 'ada' }, { name: 'goodbot' }],
      channels: [{ name: 'lab' }],
      strict_scopes: true,
      oauth_apps: [{
        client_id: '1.2', client_secret: 'none', name: 'goodbot', redirect_uris: [], ...BOT,
        bot_name: 'goodbot', scopes: scopes.split(','),
      }],
      tokens: [
        { token, type: 'bot', user: 'goodbot', scopes: scopes.split(','), ...BOT },
        { token: `${token}-poor`, type: 'bot', user: 'goodbot', scopes: ['chat:write'], ...BOT },
        { token: 'xoxp-ada', user: 'ada', type: 'user' },
      ],
    },
  },
});

async function body(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}

const door = createServer(async (request, response) => {
  const url = new URL(request.url, slack.url);
  const query = url.searchParams.size > 0 || request.method === 'GET';
  const headers = { authorization: request.headers.authorization ?? '' };
  headers['content-type'] = query ? 'application/x-www-form-urlencoded' : request.headers['content-type'] ?? '';
  const sent = query ? url.searchParams.toString() : await body(request);
  const answer = await fetch(slack.url + url.pathname, { method: 'POST', headers, body: sent });
  const unknown = answer.status === 404;
  response.writeHead(unknown ? 200 : answer.status, { 'content-type': 'application/json; charset=utf-8' });
  response.end(unknown ? '{"ok":false,"error":"unknown_method"}' : await answer.text());
});

door.keepAliveTimeout = 0; // a test may pause for longer, and ask on the same connection then
door.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: door.address().port, url: slack.url })));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
