// Merges thresholds.yml and MON_* variables over the defaults; unknown names and bad values are
// problems, never ignored.

import { nearestName } from '@holdfast/kit/text';
import { type Layer, pick } from './load.ts';
import type { Problem } from './setting.ts';
import {
  ALERT_LEVELS,
  DEFAULT_THRESHOLDS,
  type FigureKind,
  figureKind,
  type ModuleThresholds,
  type Thresholds,
  TOP_LEVEL,
} from './status.ts';

export interface LoadedThresholds {
  thresholds: Thresholds;
  problems: Problem[];
}

/** One threshold that can be set: its place in the file and the variable that overrides it. */
interface Slot {
  variable: string;
  path: string;
  kind: FigureKind;
  /** The source of the value: the variable, or its place in the file. */
  setBy?: string;
  set(value: number | string): void;
}

type Draft = { -readonly [K in keyof Thresholds]: Thresholds[K] } & { modules: Record<string, ModuleThresholds> };

const EXPECTS: Record<FigureKind, string> = {
  seconds: 'a whole number of seconds from 1 to 2147483',
  figure: 'a number of 0 or more',
  percentage: 'a number from 0 to 100',
  count: 'a whole number from 0 to 2147483647',
  polls: 'a whole number from 1 to 2147483647',
  level: ALERT_LEVELS.join(', '),
};

/**
 * Reads every MON_* variable of `layers`. `document` is the parsed YAML of the file called `file`
 * (undefined or null when it is empty).
 */
export function loadThresholds(document: unknown, file: string, layers: readonly Layer[]): LoadedThresholds {
  const draft = structuredClone(DEFAULT_THRESHOLDS) as Draft;
  const slots = slotsOf(draft);
  const problems = [...applyFile(document, file, slots), ...applyVariables(layers, slots)];
  problems.push(...slots.flatMap((slot) => turnedRound(slot, slots, draft)));
  const variables = slots.filter(({ setBy, variable }) => setBy === variable).map(({ variable }) => variable);
  return { thresholds: variables.length === 0 ? draft : { ...draft, set_by: variables }, problems };
}

function slotsOf(draft: Draft): Slot[] {
  const top = (Object.keys(TOP_LEVEL) as (keyof typeof TOP_LEVEL)[]).map((key): Slot => ({
    variable: `MON_${key.toUpperCase()}`,
    path: key,
    kind: TOP_LEVEL[key],
    set: (value) => {
      draft[key] = Number(value);
    },
  }));
  const nested = Object.entries(draft.modules).flatMap(([module, figures]) =>
    Object.keys(figures).map((key): Slot => ({
      variable: `MON_${module.toUpperCase()}_${key.toUpperCase()}`,
      path: `modules.${module}.${key}`,
      kind: figureKind(module, key),
      set: (value) => {
        figures[key] = value;
      },
    })),
  );
  return [...top, ...nested];
}

function applyFile(document: unknown, file: string, slots: Slot[]): Problem[] {
  if (document === undefined || document === null) return [];
  const leaves: [string, unknown][] = [];
  collectLeaves(document, '', leaves);
  return leaves.flatMap(([path, value]) => {
    const slot = slots.find((candidate) => candidate.path === path);
    const name = `${file}: ${path === '' ? 'the file' : path}`;
    if (slot === undefined) {
      return [
        unknownName(
          name,
          path,
          slots.map((candidate) => candidate.path),
        ),
      ];
    }
    const accepted =
      typeof value === 'number' || typeof value === 'string' ? accept(slot.kind, String(value)) : undefined;
    if (accepted === undefined) return [badFigure(name, JSON.stringify(value) ?? '', slot.kind)];
    slot.set(accepted);
    slot.setBy = name;
    return [];
  });
}

function collectLeaves(node: unknown, path: string, leaves: [string, unknown][]): void {
  if (typeof node !== 'object' || node === null || Array.isArray(node)) {
    leaves.push([path, node]);
    return;
  }
  for (const [key, child] of Object.entries(node)) collectLeaves(child, path === '' ? key : `${path}.${key}`, leaves);
}

function applyVariables(layers: readonly Layer[], slots: Slot[]): Problem[] {
  const names = new Set(layers.flatMap((layer) => Object.keys(layer.values)).filter((name) => name.startsWith('MON_')));
  return [...names].flatMap((name) => {
    const found = pick(layers, name);
    if (found === undefined) return [];
    const slot = slots.find((candidate) => candidate.variable === name);
    if (slot === undefined)
      return [
        unknownName(
          name,
          name,
          slots.map((candidate) => candidate.variable),
          found.value,
        ),
      ];
    const accepted = accept(slot.kind, found.value.trim());
    if (accepted === undefined) return [badFigure(name, found.value, slot.kind)];
    slot.set(accepted);
    slot.setBy = name;
    return [];
  });
}

function accept(kind: FigureKind, text: string): number | string | undefined {
  if (kind === 'level') return ALERT_LEVELS.find((level) => level === text);
  if (!/^\d{1,15}(\.\d{1,9})?(e\d{1,2})?$/i.test(text)) return undefined;
  const value = Number(text);
  if (kind === 'figure') return value;
  if (kind === 'percentage') return within(value, 0, 100);
  if (!Number.isInteger(value)) return undefined;
  if (kind === 'seconds') return within(value, 1, 2147483);
  return within(value, kind === 'polls' ? 1 : 0, 2147483647);
}

function within(value: number, min: number, max: number): number | undefined {
  return value >= min && value <= max ? value : undefined;
}

/**
 * A pair of thresholds keeps the direction of its defaults (critical above or below warning);
 * reversed, every good value would be critical. Reported for the one of the two that was set last.
 */
function turnedRound(slot: Slot, slots: Slot[], draft: Draft): Problem[] {
  const [, module = '', key = ''] = /^modules\.(\w+)\.(\w*warning)$/.exec(slot.path) ?? [];
  const defaults = DEFAULT_THRESHOLDS.modules[module];
  const criticalKey = key.replace('warning', 'critical');
  const partner = slots.find(({ path }) => path === `modules.${module}.${criticalKey}`);
  if (defaults === undefined || partner === undefined) return [];
  const wanted = Math.sign(Number(defaults[criticalKey]) - Number(defaults[key]));
  const [warning, critical] = [draft.modules[module]?.[key], draft.modules[module]?.[criticalKey]].map(Number);
  if (warning === undefined || critical === undefined || (critical - warning) * wanted >= 0) return [];
  const set = partner.setBy === undefined ? slot : partner;
  return [
    {
      name: set.setBy ?? set.path,
      value: String(set === slot ? warning : critical),
      message: `reverses ${module}: warning is ${warning} and critical is ${critical}, but critical must be the ${wanted > 0 ? 'larger' : 'smaller'} one`,
      remedy: `set ${slot.variable} and ${partner.variable} both, or neither`,
    },
  ];
}

function unknownName(name: string, request: string, known: string[], value?: string): Problem {
  const meant = nearestName(request, known);
  return {
    name,
    value,
    message: 'is not a known threshold',
    remedy:
      meant === undefined ? 'remove it; monitor/config/thresholds.yml lists every threshold' : `did you mean ${meant}?`,
  };
}

function badFigure(name: string, value: string, kind: FigureKind): Problem {
  return {
    name,
    value,
    message: `must be ${kind === 'level' ? 'one of ' : ''}${EXPECTS[kind]}`,
    remedy: 'correct it, or remove it for the default',
  };
}
