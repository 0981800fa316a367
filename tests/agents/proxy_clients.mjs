// SPDX-License-Identifier: Apache-2.0
// The official Node clients against the proxy, in both APIs; prints what they saw as one JSON object.
import { createRequire } from 'node:module';
const [where, url, token, sdk] = process.argv.slice(2);
const require = createRequire(where + '/');
const tool = { name: 'add', description: 'Adds.', parameters: { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } }, required: ['a', 'b'] } };
const messages = [{ role: 'user', content: 'What do good dogs do?' }];
const seen = {};

async function openai() {
  const OpenAI = require('openai');
  const client = new (OpenAI.OpenAI ?? OpenAI)({ apiKey: token, baseURL: `${url}/v1`, maxRetries: 0 });
  const { data, response } = await client.chat.completions.create({ model: 'm-1', messages }).withResponse();
  seen.whole = data.choices[0].message.content;
  seen.turn = response.headers.get('x-goodbot-turn');
  seen.streamed = '';
  for await (const chunk of await client.chat.completions.create({ model: 'm-1', messages, stream: true })) {
    seen.streamed += chunk.choices[0]?.delta?.content ?? '';
  }
  const called = await client.chat.completions.create({ model: 'm-1', messages, tools: [{ type: 'function', function: tool }] });
  seen.call = called.choices[0].message.tool_calls[0].function;
  const made = await client.responses.create({ model: 'm-1', input: 'What do good dogs do?' });
  seen.responses = made.output_text;
  seen.response_deltas = 0;
  for await (const event of await client.responses.create({ model: 'm-1', input: 'Again', stream: true })) {
    if (event.type === 'response.output_text.delta') seen.response_deltas += 1;
  }
  seen.models = (await client.models.list()).data.length;
  const stranger = new (OpenAI.OpenAI ?? OpenAI)({ apiKey: 'gb_wrong', baseURL: `${url}/v1`, maxRetries: 0 });
  try { await stranger.chat.completions.create({ model: 'm-1', messages }); } catch (error) { seen.error = [error.status, error.constructor.name]; }
}

async function anthropic() {
  const Anthropic = require('@anthropic-ai/sdk');
  const client = new (Anthropic.Anthropic ?? Anthropic)({ apiKey: token, baseURL: url, maxRetries: 0 });
  const { data, response } = await client.messages.create({ model: 'm-1', max_tokens: 99, messages }).withResponse();
  seen.whole = data.content[0].text;
  seen.turn = response.headers.get('x-goodbot-turn');
  const stream = client.messages.stream({ model: 'm-1', max_tokens: 99, messages });
  seen.streamed = '';
  stream.on('text', (text) => { seen.streamed += text; });
  await stream.finalMessage();
  const called = await client.messages.create({ model: 'm-1', max_tokens: 99, messages, tools: [{ name: tool.name, description: tool.description, input_schema: tool.parameters }] });
  const block = called.content.find((one) => one.type === 'tool_use');
  seen.call = { name: block.name, arguments: JSON.stringify(block.input) };
  seen.tokens = (await client.messages.countTokens({ model: 'm-1', messages })).input_tokens;
  const stranger = new (Anthropic.Anthropic ?? Anthropic)({ apiKey: 'gb_wrong', baseURL: url, maxRetries: 0 });
  try { await stranger.messages.create({ model: 'm-1', max_tokens: 9, messages }); } catch (error) { seen.error = [error.status, error.constructor.name]; }
}

await (sdk === 'openai' ? openai() : anthropic());
console.log(JSON.stringify(seen));
