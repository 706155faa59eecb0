// Generates .env.template, the tables of docs/ that repeat the code, and the version in the files
// of Compose and Helm (npm run generate).

import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { renderClientCalls } from '@holdfast/core/client-calls';
import { createApp } from '../functions/app.ts';
import { renderApiTables } from '../functions/openapi.ts';
import { renderMetricsTables } from '../shared/health/metrics-reference.ts';
import { renderEnvTemplate, renderSettingsTable, renderThresholdsTable } from '../shared/settings/documents.ts';
import { populatedDeps } from '../test/health/fake-populated.ts';

const home = resolve(import.meta.dirname, '..');

/** Replaces what stands between the two comments `<!-- mark -->` and `<!-- /mark -->` of a page. */
function replaceMarked(page: string, mark: string, content: string): void {
  const path = join(home, 'docs', page);
  const text = readFileSync(path, 'utf8');
  const [begin, end] = [`<!-- ${mark} -->`, `<!-- /${mark} -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/${page} has lost its markers: ${begin} and ${end}`);
  writeFileSync(path, `${text.slice(0, from + begin.length)}\n${content}\n${text.slice(to)}`);
}

replaceMarked('settings.md', 'settings', renderSettingsTable());
replaceMarked('clients.md', 'calls', renderClientCalls());
replaceMarked('health.md', 'thresholds', renderThresholdsTable());
const deps = await populatedDeps();
replaceMarked('api.md', 'api', renderApiTables(createApp(deps)));
for (const [mark, table] of Object.entries(await renderMetricsTables(deps))) replaceMarked('metrics.md', mark, table);
writeFileSync(join(home, '.env.template'), renderEnvTemplate());

// Neither Compose nor Helm reads JSON.
const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as { version: string };
const place = /(image: localhost\/holdfast:|args: \{ RELEASE: |^(?:appV|v)ersion: )\d[\w.-]*/gm;
for (const file of ['compose/program.yaml', 'compose/kubernetes/Chart.yaml'].map((path) => join(home, path)))
  writeFileSync(file, readFileSync(file, 'utf8').replace(place, `$1${version}`));
