// Generates .env.template and the table in docs/settings.md from the settings table (npm run
// generate).

import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { renderEnvTemplate, renderSettingsTable } from '../shared/settings/documents.ts';

const home = resolve(import.meta.dirname, '..');
const page = join(home, 'docs/settings.md');
const MARKED = /(<!-- settings -->\n)[\s\S]*(<!-- \/settings -->)/;

const text = readFileSync(page, 'utf8');
if (!MARKED.test(text)) throw new Error('docs/settings.md has lost its settings markers');
writeFileSync(
  page,
  text.replace(MARKED, (_, begin: string, end: string) => `${begin}${renderSettingsTable()}\n${end}`),
);
writeFileSync(join(home, '.env.template'), renderEnvTemplate());
