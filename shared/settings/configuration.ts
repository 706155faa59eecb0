// Reads the settings and thresholds of a process from its layers and from
// monitor/config/thresholds.yml.

import { existsSync, readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { codeOf, messageOf } from '@holdfast/kit/app-error';
import { SHIPPED_THRESHOLDS } from '@holdfast/kit/release';
import { type Layer, type LoadedSettings, loadSettings, parseEnvFile, pick } from './load.ts';
import type { Mode } from './rules.ts';
import type { ConfigurationFiles, Problem } from './setting.ts';
import type { Thresholds } from './status.ts';
import { SETTING_NAMES } from './table.ts';
import { loadThresholds } from './thresholds.ts';

export interface Configuration extends LoadedSettings {
  thresholds: Thresholds;
}

export const THRESHOLDS_FILE = 'monitor/config/thresholds.yml';

/**
 * Everything that a start needs to know, with every problem of both sources. `home` is the root of
 * the release.
 */
export function readConfiguration(home: string, layers: readonly Layer[], mode: Mode): Configuration {
  return configurationOf(layers, mode, () => readFileSync(join(home, THRESHOLDS_FILE), 'utf8'));
}

/**
 * The same, from thresholds text that the caller already has. An error of `thresholdsText` becomes
 * a problem.
 */
export function configurationOf(layers: readonly Layer[], mode: Mode, thresholdsText: () => string): Configuration {
  const loaded = loadSettings(layers, mode);
  const file = parseThresholds(thresholdsText);
  const { thresholds, problems } = loadThresholds(file.document, THRESHOLDS_FILE, layers);
  return { ...loaded, thresholds, problems: [...loaded.problems, ...file.problems, ...problems] };
}

function parseThresholds(thresholdsText: () => string): { document: unknown; problems: Problem[] } {
  try {
    const text = thresholdsText();
    // The shipped text is used unchanged almost everywhere, and parsing it would be a tenth of the
    // start.
    if (text === SHIPPED_THRESHOLDS) return { document: undefined, problems: [] };
    return { document: parse(text) as unknown, problems: [] };
  } catch (error) {
    const message = messageOf(error).split('\n')[0];
    const remedy = 'correct the file, or restore the shipped one: git checkout monitor/config/thresholds.yml';
    return {
      document: undefined,
      problems: [{ name: THRESHOLDS_FILE, value: undefined, message: `can't be read: ${message}`, remedy }],
    };
  }
}

const LARGEST_BYTES = 1_000_000;

/** Compares the files that the settings came from with the values read at the start. */
export interface ConfigurationStart {
  /** The root of the release. */
  home: string;
  layers: readonly Layer[];
  mode: Mode;
  /** Where the env file is or would be; undefined when there can't be one. */
  envFile: string | undefined;
  thresholds: Thresholds;
}

/**
 * A file can hang (a dead network drive), so at most one check runs at a time. A caller that
 * arrives during a check gets the next one, because the file may have changed since it was read.
 */
export function watchConfiguration(start: ConfigurationStart): ConfigurationFiles {
  const thresholdsFile = join(start.home, THRESHOLDS_FILE);
  const textAtStart = existsSync(thresholdsFile) ? readFileSync(thresholdsFile, 'utf8') : undefined;
  let looking: Promise<string[]> | undefined;
  let next: Promise<string[]> | undefined;

  async function look(): Promise<string[]> {
    const envFile = await readEnvFile(start.envFile);
    if (envFile.faults.length > 0) return envFile.faults;
    const layers = layersNow(start.layers, envFile.values);
    const names = SETTING_NAMES.filter((name) => valueOf(layers, name) !== valueOf(start.layers, name));
    const thresholdsNow = await readSmallFile(thresholdsFile).catch((error: unknown) => error as Error);
    if (names.length === 0 && thresholdsNow === textAtStart && sameOverrides(layers, start.layers)) return [];
    const { thresholds, problems } = configurationOf(layers, start.mode, () => {
      if (typeof thresholdsNow === 'string') return thresholdsNow;
      throw thresholdsNow ?? new Error('there is no such file');
    });
    const { set_by: _, ...figures } = thresholds;
    const changed = [...names, ...changedFigures(start.thresholds, figures)];
    const refused = new Set(problems.map(({ name }) => name));
    return [
      ...changed.filter((name) => !refused.has(name)),
      ...[...refused].map((name) => `${name} (the next start would refuse it)`),
    ];
  }

  function begin(): Promise<string[]> {
    next = undefined;
    const begun = look().finally(() => {
      if (looking === begun) looking = undefined;
    });
    looking = begun;
    return begun;
  }

  return {
    changedSinceStart: () => (looking === undefined ? begin() : (next ??= looking.then(begin, begin))),
  };
}

interface EnvFileNow {
  /** Undefined when there is no file. */
  values: Layer['values'] | undefined;
  /** Settings that the next start would refuse. */
  faults: string[];
}

async function readEnvFile(path: string | undefined): Promise<EnvFileNow> {
  try {
    const text = path === undefined ? undefined : await readSmallFile(path);
    if (text === undefined) return { values: undefined, faults: [] };
    const { values, problems } = parseEnvFile(text);
    const faults = problems.map(
      ({ line, message }) => `${path} line ${line} (${message}; the next start would refuse it)`,
    );
    return { values, faults };
  } catch (error) {
    return { values: undefined, faults: [`${path} (can't be read: ${messageOf(error)})`] };
  }
}

/**
 * Undefined when there is none. /dev/null counts as an empty file; anything else that isn't a
 * regular file is refused unread.
 */
async function readSmallFile(path: string): Promise<string | undefined> {
  if (path === '/dev/null') return '';
  try {
    const { size, isFile } = await stat(path).then((found) => ({ size: found.size, isFile: found.isFile() }));
    if (!isFile || size > LARGEST_BYTES) throw new Error(isFile ? 'it is too large' : "it isn't a regular file");
    return await readFile(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * The layers as a start would read them now: the env file is read again, in its place among the
 * others.
 */
function layersNow(layers: readonly Layer[], envValues: Layer['values'] | undefined): Layer[] {
  const others = layers.filter(({ source }) => source !== 'env file');
  if (envValues === undefined) return others;
  const place = others.findIndex(({ source }) => source === 'environment') + 1;
  return others.toSpliced(place, 0, { source: 'env file', values: envValues });
}

function valueOf(layers: readonly Layer[], name: string): string | undefined {
  return pick(layers, name)?.value.trim();
}

function sameOverrides(a: readonly Layer[], b: readonly Layer[]): boolean {
  const names = new Set([...a, ...b].flatMap(({ values }) => Object.keys(values)));
  return [...names].every((name) => !name.startsWith('MON_') || valueOf(a, name) === valueOf(b, name));
}

/** Dotted names of the thresholds that differ. */
function changedFigures(before: object, after: object, path = ''): string[] {
  return Object.entries(after).flatMap(([key, value]: [string, unknown]) => {
    const old = (before as Record<string, unknown>)[key];
    if (typeof value === 'object' && value !== null && typeof old === 'object' && old !== null)
      return changedFigures(old, value, `${path}${key}.`);
    return value === old ? [] : [`${path}${key}`];
  });
}
