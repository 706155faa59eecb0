// Renders .env.template and the table of docs/settings.md from the settings table, so that neither
// can drift.

import { type Section, SECTIONS, type Setting } from './setting.ts';
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

function initialOf(setting: Setting): string {
  if (setting.initial !== undefined) return `\`${setting.initial}\``;
  return setting.example === 'generated' ? 'generated' : 'unset';
}

function inSection(section: Section): [string, Setting][] {
  return Object.entries<Setting>(SETTINGS).filter(([, setting]) => setting.section === section);
}
