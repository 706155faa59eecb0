// Compares the files that the settings came from with what was read at the start.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnvFile } from '../config/env-file.ts';
import { type Layer, pick } from '../config/load-settings.ts';
import type { Mode } from '../config/setting-rules.ts';
import { SETTING_NAMES } from '../config/settings.ts';
import { codeOf } from '../domain/thrown.ts';
import type { Thresholds } from '../domain/thresholds.ts';
import type { ConfigurationFiles } from '../ports/configuration-files.ts';
import { readConfiguration, THRESHOLDS_FILE } from './configuration.ts';

export interface ConfigurationStart {
  /** The root of the release. */
  home: string;
  layers: readonly Layer[];
  mode: Mode;
  /** Where the env file is, or would be; undefined where there can be none. */
  envFile: string | undefined;
  thresholds: Thresholds;
}

export function watchConfiguration(start: ConfigurationStart): ConfigurationFiles {
  const thresholdsFile = join(start.home, THRESHOLDS_FILE);
  const textAtStart = textOf(thresholdsFile);

  async function changedSinceStart(): Promise<string[]> {
    const envFile = readEnvFile(start.envFile);
    if (envFile.faults.length > 0) return envFile.faults;
    const layers = layersNow(start.layers, envFile.values);
    const names = SETTING_NAMES.filter((name) => valueOf(layers, name) !== valueOf(start.layers, name));
    if (names.length === 0 && textOf(thresholdsFile) === textAtStart && sameOverrides(layers, start.layers)) return [];
    const { thresholds, problems } = readConfiguration(start.home, layers, start.mode);
    const changed = [...names, ...changedFigures(start.thresholds, thresholds)];
    const refused = new Set(problems.map(({ name }) => name));
    return [
      ...changed.filter((name) => !refused.has(name)),
      ...[...refused].map((name) => `${name} (the next start would refuse it)`),
    ];
  }

  return { changedSinceStart };
}

interface EnvFileNow {
  /** Undefined where there is no file. */
  values: Layer['values'] | undefined;
  /** Lines that the next start would refuse. */
  faults: string[];
}

function readEnvFile(path: string | undefined): EnvFileNow {
  if (path === undefined || !existsSync(path)) return { values: undefined, faults: [] };
  try {
    const { values, problems } = parseEnvFile(readFileSync(path, 'utf8'));
    const faults = problems.map(
      ({ line, message }) => `${path} line ${line} (${message}; the next start would refuse it)`,
    );
    return { values, faults };
  } catch (error) {
    return { values: undefined, faults: [`${path} (cannot be read: ${codeOf(error) ?? 'unknown reason'})`] };
  }
}

/** The layers as a start would read them now: the env file, anew, where it stood. */
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

/** Dotted names of the figures that differ. */
function changedFigures(before: object, after: object, path = ''): string[] {
  return Object.entries(after).flatMap(([key, value]: [string, unknown]) => {
    const old = (before as Record<string, unknown>)[key];
    if (typeof value === 'object' && value !== null && typeof old === 'object' && old !== null)
      return changedFigures(old, value, `${path}${key}.`);
    return value === old ? [] : [`${path}${key}`];
  });
}

function textOf(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}
