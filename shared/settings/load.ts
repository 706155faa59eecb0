// Reads layers of variables into settings (first one wins, empty means unset), or lists every
// problem at once.

import { z } from 'zod';
import { nearestName } from '@holdfast/kit/text';
import { type Mode, settingRules } from './rules.ts';
import { type Problem, SECTIONS } from './setting.ts';
import { isSettingName, SETTING_NAMES, type SettingName, SETTINGS, type Settings } from './table.ts';

/** Where a value came from, as displayed to people. */
export type Source = 'command line' | 'environment' | 'env file' | 'generated' | 'stack' | 'default' | 'unset';

/** Variables from one place, by name. */
export interface Layer {
  source: Source;
  values: Readonly<Record<string, string | undefined>>;
}

export interface LoadedSettings {
  settings: Settings;
  sources: Readonly<Record<SettingName, Source>>;
  problems: Problem[];
}

/** The value of `name` in the first layer that has one. Empty and blank values count as unset. */
export function pick(layers: readonly Layer[], name: string): { value: string; source: Source } | undefined {
  for (const layer of layers) {
    const value = layer.values[name];
    if (value !== undefined && value.trim() !== '') return { value, source: layer.source };
  }
  return undefined;
}

/**
 * Parses every variable of the table. When there are problems, `settings` is incomplete and must
 * not be used. `mode` selects the rules that span variables: the container stack requires more than
 * the embedded one.
 */
export function loadSettings(layers: readonly Layer[], mode: Mode): LoadedSettings {
  const problems: Problem[] = [];
  const values: Partial<Record<SettingName, unknown>> = {};
  const sources = {} as Record<SettingName, Source>;
  for (const name of SETTING_NAMES) {
    const setting = SETTINGS[name];
    const found = pick(layers, name);
    const given = setting.kind.secret ? found?.value : found?.value.trim();
    const textValue = given ?? setting.initial;
    sources[name] = found?.source ?? (setting.initial === undefined ? 'unset' : 'default');
    if (textValue === undefined) continue;
    const parsed = setting.kind.schema.safeParse(textValue);
    if (parsed.success) values[name] = parsed.data;
    else
      problems.push(
        badValue(
          name,
          textValue,
          parsed.error.issues.find((issue) => issue.code === 'custom' && issue.params?.['reason'] === true)?.message,
        ),
      );
  }
  const settings = Object.freeze(values) as Settings;
  problems.push(...settingRules(settings, mode, new Set(problems.map((problem) => problem.name))));
  return { settings, sources: Object.freeze(sources), problems };
}

function badValue(name: SettingName, value: string, reason: string | undefined): Problem {
  const { kind, example, initial } = SETTINGS[name];
  const otherwise = initial === undefined ? 'or remove it' : `or remove it for the default (${initial})`;
  return {
    name,
    value: kind.secret ? '***' : value,
    message: `must be ${kind.expects}${reason === undefined ? '' : `; ${reason}`}`,
    remedy:
      example === 'generated' ? 'remove it to have one generated' : `set for example ${name}=${example}, ${otherwise}`,
  };
}

/** Names in an env file that no setting has, each with the known name that may be meant. */
export function unknownNames(names: readonly string[]): { name: string; meant: string | undefined }[] {
  return names
    .filter((name) => !isSettingName(name) && !name.startsWith('MON_'))
    .map((name) => ({ name, meant: nearestName(name, SETTING_NAMES) }));
}

/**
 * Parses the .env format: NAME=value lines with # comments. Values are plain, in single quotes
 * (literal) or in double quotes (
 * , \t, \", \\ and \$ are escapes). A $ is literal here, but Docker Compose expands it, so a value
 * with a $ belongs in single quotes, which both read alike.
 */
export interface EnvFile {
  values: Record<string, string>;
  /** Lines that can't be read, by number. */
  problems: { line: number; message: string }[];
}

const ASSIGNMENT = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$/;
const DOUBLE_QUOTED = /^"((?:[^"\\]|\\.)*)"\s*(?:#.*)?$/;
const SINGLE_QUOTED = /^'([^']*)'\s*(?:#.*)?$/;
const ESCAPES: Record<string, string> = { n: '\n', t: '\t', r: '\r' };

/** Parses the text of an env file; a later line wins over an earlier one of the same name. */
export function parseEnvFile(text: string): EnvFile {
  const file: EnvFile = { values: {}, problems: [] };
  for (const [index, raw] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const assignment = ASSIGNMENT.exec(line);
    const value = assignment ? unquote(assignment[2] ?? '') : undefined;
    if (assignment === null) file.problems.push({ line: index + 1, message: "isn't NAME=value" });
    else if (value === undefined)
      file.problems.push({ line: index + 1, message: "has a quote that isn't closed on its line, or text after it" });
    else file.values[assignment[1] ?? ''] = value;
  }
  return file;
}

function unquote(text: string): string | undefined {
  if (text.startsWith('"')) {
    const body = DOUBLE_QUOTED.exec(text)?.[1];
    return body?.replaceAll(/\\(.)/g, (_, escaped: string) => ESCAPES[escaped] ?? escaped);
  }
  if (text.startsWith("'")) return SINGLE_QUOTED.exec(text)?.[1];
  return text.replace(/(^|\s)#.*$/, '').trim();
}

/** As Docker Compose, our own scripts and parseEnvFile read it back. */
export function formatEnvValue(value: string): string {
  if (/^[A-Za-z0-9_./:@,+-]*$/.test(value)) return value;
  if (!/['\n]/.test(value)) return `'${value}'`;
  return `"${value.replaceAll(/[\\"$]/g, (each) => `\\${each}`).replaceAll('\n', String.raw`\n`)}"`;
}

/**
 * The effective settings as a person may see them: the source of each, and secrets only as set or
 * unset.
 */
export interface SettingView {
  name: SettingName;
  section: string;
  about: string;
  value: string | number | boolean | string[] | null;
  source: Source;
  secret: boolean;
}

/** Every setting in the order of the table. */
export function showSettings(settings: Settings, sources: Readonly<Record<SettingName, Source>>): SettingView[] {
  return SETTING_NAMES.map((name) => {
    const { kind, section, about } = SETTINGS[name];
    return {
      name,
      section: SECTIONS[section],
      about,
      value: shown(name, settings),
      source: sources[name],
      secret: kind.secret,
    };
  });
}

function shown(name: SettingName, settings: Settings): SettingView['value'] {
  const value = settings[name];
  if (SETTINGS[name].kind.secret) return value === undefined ? 'unset' : 'set';
  return (value as SettingView['value'] | undefined) ?? null;
}

/**
 * The variable in which a supervisor hands the layers to the processes that it starts. Without it
 * (containers), a process reads the environment itself.
 */
export const HANDOVER_VARIABLE = 'HOLDFAST_HANDOVER';

export const handoverSchema = z.object({
  mode: z.enum(['embedded', 'container', 'light']),
  layers: z.array(
    z.object({
      source: z.enum(['command line', 'environment', 'env file', 'generated', 'stack', 'default', 'unset']),
      values: z.record(z.string(), z.string()),
    }),
  ),
  /** Where the env file is or would be. */
  envFile: z.string().optional(),
  /**
   * Directories of the stack whose file systems are watched, in addition to those that settings
   * name.
   */
  dataPlaces: z.array(z.string()).optional(),
  /** The Compose project whose containers are watched. */
  composeProject: z.string().optional(),
  /** The --listen address with its certificate files. */
  tls: z.object({ address: z.string(), certificateFile: z.string(), keyFile: z.string() }).optional(),
});

export type Handover = z.infer<typeof handoverSchema>;

/** The handover of this process; without a supervisor, the environment in container mode. */
export function readHandover(environment: NodeJS.ProcessEnv): Handover & { layers: Layer[]; mode: Mode } {
  const text = environment[HANDOVER_VARIABLE];
  if (text !== undefined) return handoverSchema.parse(JSON.parse(text));
  return { mode: 'container', layers: [environmentLayer(environment)] };
}

/** The process environment as a layer. */
export function environmentLayer(environment: NodeJS.ProcessEnv): Layer & { values: Record<string, string> } {
  const entries = Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { source: 'environment', values: Object.fromEntries(entries) };
}

/**
 * The settings that workerd needs: it learns that full vacuum is available, but not the owner's
 * URL, which only the Node host uses.
 */
export function forWorkerd(handover: Handover): Handover {
  const name = 'CORE_DATABASE_OWNER_URL';
  const kept = (values: Record<string, string>): Record<string, string> =>
    values[name] ? { ...values, [name]: 'postgres://known-to-the-host/cot' } : values;
  return { ...handover, layers: handover.layers.map((layer) => ({ ...layer, values: kept(layer.values) })) };
}
