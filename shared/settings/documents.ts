// Renders .env.template and the tables of docs/settings.md and docs/health.md from the code.

import { type Section, SECTIONS, type Setting } from './setting.ts';
import { DEFAULT_THRESHOLDS } from './status.ts';
import { SETTINGS } from './table.ts';

const HEADER = `# Holdfast settings. Copy this file to .env and set what you need; an empty value means unset.
# The environment wins over .env. Written by "npm run generate" from shared/settings/table.ts.
# Thresholds of the monitor: monitor/config/thresholds.yml, each with an override MON_<MODULE>_<KEY>.
`;

/** The whole text of .env.template: one commented line per variable, grouped by section. */
export function renderEnvTemplate(): string {
  const sections = (Object.keys(SECTIONS) as Section[]).map((section) => {
    const lines = inSection(section).map(([name, setting]) => `# ${setting.about}\n${assignment(name, setting)}\n`);
    return `\n# ${SECTIONS[section]}\n\n${lines.join('')}`;
  });
  return HEADER + sections.join('');
}

function assignment(name: string, setting: Setting): string {
  if (setting.initial !== undefined) return `#${name}=${setting.initial}`;
  return setting.example === 'generated' ? `${name}=` : `#${name}=${setting.example}`;
}

/** The table of docs/settings.md, in Markdown, without a final line break. */
export function renderSettingsTable(): string {
  const rows = (Object.keys(SECTIONS) as Section[]).flatMap((section) =>
    inSection(section).map(([name, setting]) => `| \`${name}\` | ${initialOf(setting)} | ${setting.about} |`),
  );
  return ['| Variable | Default | Effect |', '|---|---|---|', ...rows].join('\n');
}

/** The table of thresholds in docs/health.md, in Markdown, without a final line break. */
export function renderThresholdsTable(): string {
  const { modules, ...rest } = DEFAULT_THRESHOLDS;
  const rows = Object.entries({ ...modules, '': rest }).map(([module, figures]) => {
    const values = Object.entries(figures).map(([key, value]) => `\`${key.toUpperCase()}\` ${String(value)}`);
    return `| \`MON_${module === '' ? '' : `${module.toUpperCase()}_`}...\` | ${values.join(', ')} |`;
  });
  return ['| Variables | Defaults |', '|---|---|', ...rows].join('\n');
}

function initialOf(setting: Setting): string {
  if (setting.initial !== undefined) return `\`${setting.initial}\``;
  return setting.example === 'generated' ? 'generated' : 'unset';
}

function inSection(section: Section): [string, Setting][] {
  return Object.entries<Setting>(SETTINGS).filter(([, setting]) => setting.section === section);
}
