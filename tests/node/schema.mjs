// SPDX-License-Identifier: Apache-2.0
// node schema.mjs TYPES GROUP… prints JSON Schema of the interfaces GROUP in the file TYPES:
// {"definitions": …, GROUP: {"chat.update": schema, …}, …}.

import { createFormatter, createParser, createProgram, SchemaGenerator } from 'ts-json-schema-generator';

const HERE = import.meta.dirname;
const [TYPES, ...GROUPS] = process.argv.slice(2);
const SMALL = 160; // characters that a definition of its own would not save

const config = {
  path: `${HERE}/${TYPES}`,
  tsconfig: `${HERE}/tsconfig.json`,
  skipTypeCheck: true,
  expose: 'none', // many types of these packages share a name and mean different things
  jsDoc: 'none',
  topRef: false,
  additionalProperties: false,
};
const program = createProgram(config);
const names = new Map();
const definitions = {};

/** The same schema, with each of its parts that comes more than once written down once. */
function share(node) {
  if (Array.isArray(node)) return node.map(share);
  if (node === null || typeof node !== 'object') return node;
  const shared = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, share(value)]));
  if (typeof shared.type !== 'string' && !Array.isArray(shared.anyOf)) return shared;
  const text = JSON.stringify(shared);
  if (text.length < SMALL) return shared;
  if (!names.has(text)) {
    names.set(text, `d${names.size}`);
    definitions[names.get(text)] = shared;
  }
  return { $ref: `#/definitions/${names.get(text)}` };
}

function schemas(group) {
  const mine = { ...config, type: group };
  const generator = new SchemaGenerator(program, createParser(program, mine), createFormatter(mine), mine);
  return share(generator.createSchema(group).properties);
}

const found = Object.fromEntries(GROUPS.map((group) => [group, schemas(group)]));
console.log(JSON.stringify({ definitions, ...found }));
