// The commands in the documents: each names a script, an option, a service and a call that exist, and each script is run by a test.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { documentsOf } from '@holdfast/setup/docs-site';
import { createApp } from '../../functions/app.ts';
import { documentOf } from '../../functions/openapi.ts';
import { COMPOSE_FILES, readComposeFile } from '../../packages/setup/test/compose.ts';
import { fakeDeps } from '../http/fake-deps.ts';
import { ROOT } from '../house.ts';

interface Command {
  document: string;
  text: string;
}

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** Lines of blocks, continued ones joined, without comments; and code in the text and in tables. */
function commandsIn(document: string): Command[] {
  const source = read(document).replaceAll(/\\\n\s*/g, '');
  const blocks = [...source.matchAll(/^ *```(?:bash|sh)?\n(.*?)^ *```/gms)].flatMap(([, block = '']) =>
    block.split('\n'),
  );
  const inline = [...source.replaceAll(/^ *```.*?^ *```/gms, '').matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
  return [...blocks, ...inline]
    .flatMap((line) => line.replace(/\s#\s.*$/, '').split(/&&|\|\||;|\|(?!\w)/))
    .map((text) => ({ document, text: text.replaceAll(/\s+/g, ' ').trim() }))
    .filter(({ text }) => text !== '');
}

const commands = documentsOf(ROOT).flatMap(commandsIn);
const matching = (pattern: RegExp): (Command & { parts: string[] })[] =>
  commands.flatMap((command) => {
    const found = pattern.exec(command.text);
    return found === null ? [] : [{ ...command, parts: found.map((part) => part ?? '') }];
  });
const shown = ({ document, text }: Command): string => `${document}: ${text}`;

const SCRIPTS = matching(/^(?:sudo )?(?:\.\/)?scripts\/([a-z-]+)\.sh\b(.*)$/);
const PROGRAM_TEXTS = globSync(['scripts/*.sh', 'packages/{stack,setup}/**/*.ts'], { cwd: ROOT }).map(read);
/** The help texts of a script, in containers and embedded. */
const helpOf = (script: string): string =>
  PROGRAM_TEXTS.filter((text) => text.includes(`Usage: ./scripts/${script}.sh`)).join('\n');
/** Of developers, without options. */
const WITHOUT_HELP = ['test', 'verify', 'release-images'];

describe('the scripts in the documents', () => {
  it('are found', () => {
    expect(SCRIPTS.length).toBeGreaterThan(100);
    expect(matching(/^(?:sudo )?\.\/(?!scripts\/|compose\/|releasing\/)\S/).map(shown)).toEqual([]);
  });

  it('have only options that their help explains', () => {
    const wrong = SCRIPTS.filter(({ parts: [, script = '', rest = ''] }) => {
      const options = [...rest.matchAll(/(?<=\s)--[a-z][a-z-]*/g)].map(([option]) => option);
      const help = helpOf(script);
      const isKnown = (option: string): boolean => new RegExp(`(?<![\\w-])${option}(?![\\w-])`).test(help);
      return help === '' ? !WITHOUT_HELP.includes(script) || options.length > 0 : !options.every(isKnown);
    });
    expect(wrong.map(shown)).toEqual([]);
  });

  it('are each run by a test with real processes', () => {
    const tests = globSync(['test/e2e/**/*.ts', 'test/**/*.real.test.ts', 'packages/*/test/**/*.real.test.ts'], {
      cwd: ROOT,
    }).map(read);
    const names = [...new Set(SCRIPTS.map(({ parts: [, script = ''] }) => script))];
    const isRun = (name: string): boolean => tests.some((text) => text.includes(`${name}.sh`));
    // The tests themselves.
    expect(names.filter((name) => !isRun(name) && !['test', 'verify'].includes(name))).toEqual([]);
  });
});

describe('the other commands in the documents', () => {
  it('name scripts of npm, projects of vitest and services of Compose that exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const npm = matching(/^npm run ([\w:]+)/).filter(({ parts: [, name = ''] }) => !(name in scripts));
    const projects = [...read('vitest.config.ts').matchAll(/name: '(\w+)',\n\s+include/g)].map(([, name = '']) => name);
    const vitest = matching(/npx vitest run (.*)$/).filter(
      ({ parts: [, rest = ''] }) => !projects.includes(/--project (\w+)/.exec(rest)?.[1] ?? ''),
    );
    const services = new Set(COMPOSE_FILES.flatMap((name) => Object.keys(readComposeFile(name).services as object)));
    const compose = matching(/^docker compose (?:logs|exec|restart|start|stop|up)((?: \S+)*)$/).filter(
      ({ parts: [, rest = ''] }) => {
        const [first] = rest.split(' ').filter((word) => /^[a-z][a-z-]+$/.test(word));
        return first !== undefined && !services.has(first);
      },
    );
    expect(projects.length).toBe(3);
    expect([...npm, ...vitest, ...compose].map(shown)).toEqual([]);
  });

  it('call only what the API has', () => {
    const { paths = {} } = documentOf(createApp(fakeDeps()), 'x');
    const known = Object.entries<object>(paths).map(
      ([path, methods]) => [new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`), Object.keys(methods)] as const,
    );
    const calls = matching(/^(?:curl|call) .*?(?:8080|\$API|example\.org)(\/(?:api|metrics|auth|oauth)[^\s'"?]*)/);
    expect(calls.length).toBeGreaterThan(30);
    const wrong = calls.filter(({ text, parts: [, path = ''] }) => {
      const method = /-X ([A-Z]+)/.exec(text)?.[1] ?? (/\s(?:-d|--data)\b/.test(text) ? 'POST' : 'GET');
      const plain = path.replaceAll(/\$\w+|\.\.\./g, 'x');
      return !known.some(([pattern, methods]) => pattern.test(plain) && methods.includes(method.toLowerCase()));
    });
    expect(wrong.map(shown)).toEqual([]);
  });
});
