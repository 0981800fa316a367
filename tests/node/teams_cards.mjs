// SPDX-License-Identifier: Apache-2.0
// Reads a list of Adaptive Cards as JSON, and prints what Microsoft's type of them has against each: a line a fault.

import { createRequire } from 'node:module';

const ts = createRequire(createRequire(import.meta.url).resolve('ts-json-schema-generator'))('typescript');
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const cards = JSON.parse(Buffer.concat(chunks).toString());
const lines = cards.map((card, n) => `export const card${n}: IAdaptiveCard = ${JSON.stringify(card)};`);
const path = `${import.meta.dirname}/cards.ts`;
const source = ["import type { IAdaptiveCard } from '@microsoft/teams.cards';", ...lines].join('\n');

const options = {
  strict: true, noEmit: true, skipLibCheck: true, types: [], target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext,
};
const host = ts.createCompilerHost(options);
const { getSourceFile, fileExists, readFile } = host;
host.getSourceFile = (name, ...more) =>
  name === path ? ts.createSourceFile(name, source, ts.ScriptTarget.ES2022) : getSourceFile(name, ...more);
host.fileExists = (name) => name === path || fileExists(name);
host.readFile = (name) => (name === path ? source : readFile(name));
const program = ts.createProgram([path], options, host);
for (const found of ts.getPreEmitDiagnostics(program)) {
  console.log(ts.flattenDiagnosticMessageText(found.messageText, ' ').slice(0, 500));
}
