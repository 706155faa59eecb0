// Writes what is derived from the settings table: .env.template and the table in README.md (npm run generate).

import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { renderEnvTemplate, renderSettingsTable } from '../shared/settings/documents.ts';

const home = resolve(import.meta.dirname, '..');
const readme = join(home, 'README.md');
const MARKED = /(<!-- settings -->\n)[\s\S]*(<!-- \/settings -->)/;

const text = readFileSync(readme, 'utf8');
if (!MARKED.test(text)) throw new Error('README.md has lost its settings markers');
writeFileSync(
  readme,
  text.replace(MARKED, (_, begin: string, end: string) => `${begin}${renderSettingsTable()}\n${end}`),
);
writeFileSync(join(home, '.env.template'), renderEnvTemplate());
