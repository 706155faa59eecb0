// A plugin of semantic-release: which commits make a release, and how the changelog names them.

import { execFileSync } from 'node:child_process';
import { analyzeCommits as analyze } from '@semantic-release/commit-analyzer';
import SemanticReleaseError from '@semantic-release/error';
import { generateNotes as generate } from '@semantic-release/release-notes-generator';

/** Whoever installs Holdfast never sees a change of these. */
const NOT_SHIPPED = /^(?:test|docs|bench|\.github)\/|^packages\/[^/]+\/test\//;
const PRESET = { preset: 'conventionalcommits' };
const KINDS = { feat: 'New', fix: 'Fixed', perf: 'Faster', revert: 'Taken back' };
const BREAKING = 'Breaking changes';
/** Commits without a scope concern the product as a whole. */
const WHOLE = 'Holdfast';
/** Scopes that are no words. */
const NAMES = { api: 'API', ci: 'CI', dns: 'DNS', kit: 'Common parts', pki: 'Certificate authority', sms: 'SMS' };

/**
 * The kind of the next release, decided by all commits since the last one.
 * @throws {SemanticReleaseError} without a last release: semantic-release would begin with 1.0.0
 */
export function analyzeCommits(_options, context) {
  if (context.lastRelease.version === undefined)
    throw new SemanticReleaseError(
      'There is no release yet: no tag v* is in the history of this branch.',
      'ENOFIRSTRELEASE',
      'Remedy: tag the first one yourself, with the version of package.json: see docs/releases.md.',
    );
  return analyze(PRESET, { ...context, commits: shipped(context) });
}

/** The section of the changelog. */
export function generateNotes(_options, context) {
  return generate({ ...PRESET, writerOpts: WRITER }, { ...context, commits: shipped(context) });
}

/** Without those that touch only what is not shipped. A commit without files counts: it asks for a release. */
function shipped({ commits, cwd, lastRelease }) {
  const range = lastRelease.gitHead === undefined ? ['HEAD'] : [`${lastRelease.gitHead}..HEAD`];
  // Of a merge it lists nothing: its commits are here themselves.
  const listed = execFileSync(
    'git',
    ['-c', 'core.quotePath=false', 'log', '--name-only', '--no-renames', '--format=commit %H', ...range],
    {
      cwd,
      encoding: 'utf8',
      maxBuffer: 256 * 1024 ** 2,
    },
  );
  const files = new Map();
  for (const entry of listed.split(/^commit (?=[0-9a-f]{40,64}$)/m).slice(1)) {
    const [hash, ...names] = entry.split('\n').filter((line) => line !== '');
    files.set(hash, names);
  }
  return commits.filter(({ hash }) => {
    const names = files.get(hash) ?? [];
    return names.length === 0 || names.some((name) => !NOT_SHIPPED.test(name));
  });
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const featureOf = (scope) => (scope ? (NAMES[scope] ?? sentence(scope.replaceAll('-', ' '))) : WHOLE);

/** Grouped by feature, each entry a sentence that begins with what kind of change it is. */
const WRITER = {
  groupBy: 'feature',
  commitGroupsSort: ({ title: a }, { title: b }) =>
    Number(a !== WHOLE) - Number(b !== WHOLE) || a.localeCompare(b, 'en'),
  commitsSort: ({ rank: a, subject: left }, { rank: b, subject: right }) => a - b || left.localeCompare(right, 'en'),
  notesSort: 'text',
  transform({ type, scope, subject, notes, hash }) {
    const isBreaking = notes.length > 0;
    if (KINDS[type] === undefined && !isBreaking) return undefined;
    return {
      feature: featureOf(scope),
      rank: Object.keys(KINDS).indexOf(type),
      subject: `${KINDS[type] ?? 'Changed'}: ${subject}`,
      shortHash: hash.slice(0, 7),
      notes: notes.map(({ text }) => ({ title: BREAKING, text: `${featureOf(scope)}: ${text}` })),
    };
  },
  headerPartial: '## {{version}}{{#if date}} ({{date}}){{/if}}\n',
  commitPartial: '- {{subject}} ({{shortHash}})\n',
  footerPartial: '',
  mainTemplate: `{{> header}}
{{#each noteGroups}}

### {{title}}

{{#each notes}}
- {{text}}
{{/each}}
{{/each}}
{{#each commitGroups}}

### {{title}}

{{#each commits}}
{{> commit}}
{{/each}}
{{/each}}
`,
};
