// Settings of the check for newer releases: which lists a management process reads.

import { expect } from 'vitest';
import type { SettingName } from '../../../shared/settings/table.ts';
import { healthOf, listenOn } from './managed.ts';

interface PartBody {
  name: string;
  newest: string | null;
  notes_url: string | null;
}

/** The parts that are compared with a mirror of both lists, whose releases are newer than any, and what was read. */
interface Mirrored {
  parts: PartBody[];
  paths: string[];
}

async function readMirror(env: Record<string, string>): Promise<Mirrored> {
  const paths: string[] = [];
  const mirror = listenOn(({ url: path = '' }, response) => {
    paths.push(path);
    const listed = path.endsWith('.json') ? { cycle: '24', latest: '24.999.0' } : { tag_name: 'v999.0.0' };
    response.end(JSON.stringify([listed]));
  });
  const url = await mirror.url;
  const places = { UPDATES_URL: `${url}/eol/`, UPDATES_GITHUB_URL: `${url}/hub` };
  const { data } = await healthOf({ ...places, ...env }, 'updates');
  mirror.close();
  return { parts: data['parts'] as PartBody[], paths };
}

let read: Promise<Mirrored> | undefined;
/** Without further settings; read once. */
const mirrored = (): Promise<Mirrored> => (read ??= readMirror({}));

export const UPDATE_BEHAVIOURS = {
  UPDATES_URL: async () => {
    const { parts, paths } = await mirrored();
    expect(paths).toContain('/eol/nodejs.json');
    const notes_url = 'https://nodejs.org/en/blog/release/v24.999.0';
    expect(parts).toContainEqual(expect.objectContaining({ name: 'Node.js', newest: '24.999.0', notes_url }));
    expect((await healthOf({}, 'updates')).message).toMatch(/switched off/);
    const nowhere = { UPDATES_URL: 'http://127.0.0.1:1/', UPDATES_GITHUB_URL: 'http://127.0.0.1:1/' };
    expect((await healthOf(nowhere, 'updates')).message).toMatch(/: no network \(/);
  },
  UPDATES_GITHUB_URL: async () => {
    const { parts, paths } = await mirrored();
    expect(paths).toContain('/hub/repos/caddyserver/caddy/releases');
    const notes_url = 'https://github.com/caddyserver/caddy/releases/tag/v999.0.0';
    expect(parts).toContainEqual(expect.objectContaining({ name: 'Caddy', newest: '999.0.0', notes_url }));
  },
  UPDATES_REPOSITORY: async () => {
    expect((await mirrored()).parts.map(({ name }) => name)).not.toContain('Holdfast');
    const { parts, paths } = await readMirror({ UPDATES_REPOSITORY: 'example/holdfast' });
    expect(paths).toContain('/hub/repos/example/holdfast/releases');
    expect(parts).toContainEqual(expect.objectContaining({ name: 'Holdfast', newest: '999.0.0' }));
  },
} satisfies Partial<Record<SettingName, () => Promise<void>>>;
