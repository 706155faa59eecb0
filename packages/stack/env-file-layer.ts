// Reads the variables of an env file: the given one, or .env in the root of the repository if it
// exists.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '@holdfast/kit/app-error';
import { type Layer, parseEnvFile, unknownNames } from '../../shared/settings/load.ts';
import type { Problem } from '../../shared/settings/setting.ts';

export interface EnvFileLayer {
  /** Of the file, even if it doesn't exist. */
  path: string;
  layer: Layer | undefined;
  problems: Problem[];
  warnings: string[];
  words: string;
}

/** `own`: in the data directory, from a restore. It counts before that of the repository. */
export function readEnvFile(home: string, explicit: string | undefined, own?: string): EnvFileLayer {
  const path = explicit ?? envFileOf(home, own);
  if (!existsSync(path)) {
    if (explicit === undefined)
      return { path, layer: undefined, problems: [], warnings: [], words: 'defaults and environment' };
    const problem = {
      name: '--env',
      value: path,
      message: 'file not found',
      remedy: 'copy .env.template to this path, or leave --env out',
    };
    return { path, layer: undefined, problems: [problem], warnings: [], words: '' };
  }
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const message = `couldn't be read (${codeOf(error) ?? 'unknown reason'})`;
    return {
      path,
      layer: undefined,
      problems: [
        { name: path, value: undefined, message, remedy: 'make it readable for this user, or run this as its owner' },
      ],
      warnings: [],
      words: '',
    };
  }
  const { values, problems } = parseEnvFile(text);
  return {
    path,
    layer: { source: 'env file', values },
    problems: problems.map(({ line, message }) => ({
      name: `${path} line ${line}`,
      value: undefined,
      message,
      remedy: 'write NAME=value, or start the line with # to make it a comment',
    })),
    warnings: unknownNames(Object.keys(values)).map(
      ({ name, meant }) => `${path}: unknown setting ${name}${meant === undefined ? '' : `. Did you mean ${meant}?`}`,
    ),
    words: path,
  };
}

/** The env file of a stack that is started without --env. */
export function envFileOf(home: string, own?: string): string {
  return own !== undefined && existsSync(own) ? own : join(home, '.env');
}
