// Reads the settings and the thresholds of a process from its layers and from monitor/config/thresholds.yml.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type Layer, type LoadedSettings, loadSettings } from '../config/load-settings.ts';
import { loadThresholds } from '../config/load-thresholds.ts';
import type { Problem } from '../config/problem.ts';
import type { Mode } from '../config/setting-rules.ts';
import type { Thresholds } from '../domain/thresholds.ts';
import { messageOf } from '../domain/thrown.ts';
import { SHIPPED_THRESHOLDS } from './release.ts';

export interface Configuration extends LoadedSettings {
  thresholds: Thresholds;
}

export const THRESHOLDS_FILE = 'monitor/config/thresholds.yml';

/** Everything that a start needs to know, with every problem of both sources. `home` is the root of the release. */
export function readConfiguration(home: string, layers: readonly Layer[], mode: Mode): Configuration {
  return configurationOf(layers, mode, () => readFileSync(join(home, THRESHOLDS_FILE), 'utf8'));
}

/** The same from a text of the thresholds that is had elsewhere; an error of `thresholdsText` becomes a problem. */
export function configurationOf(layers: readonly Layer[], mode: Mode, thresholdsText: () => string): Configuration {
  const loaded = loadSettings(layers, mode);
  const file = parseThresholds(thresholdsText);
  const { thresholds, problems } = loadThresholds(file.document, THRESHOLDS_FILE, layers);
  return { ...loaded, thresholds, problems: [...loaded.problems, ...file.problems, ...problems] };
}

function parseThresholds(thresholdsText: () => string): { document: unknown; problems: Problem[] } {
  try {
    const text = thresholdsText();
    // Unchanged, as nearly everywhere: parsing it would be a tenth of the start.
    if (text === SHIPPED_THRESHOLDS) return { document: undefined, problems: [] };
    return { document: parse(text) as unknown, problems: [] };
  } catch (error) {
    const message = messageOf(error).split('\n')[0];
    const remedy = 'correct the file, or get the shipped one back with: git checkout monitor/config/thresholds.yml';
    return {
      document: undefined,
      problems: [{ name: THRESHOLDS_FILE, value: undefined, message: `cannot be read: ${message}`, remedy }],
    };
  }
}
