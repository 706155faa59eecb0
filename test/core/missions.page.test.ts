import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { actionsOf } from '../audit/fake-audit.ts';
import { visit } from '../pages/page-session.ts';
import { ARCHIVE_ID, FIRST_GUID, someArchive, someMission } from './fake-missions.ts';

const HOSTILE = '"><script>alert(1)</script>';

describe('the page of the missions', () => {
  it('lists missions with their size and access, and kept archives', async () => {
    const { page, deps } = await visit();
    deps.missions.missions.push(someMission({ guid: ARCHIVE_ID, name: 'Closed', inviteOnly: true }));
    deps.missions.messages = ['Only the first 1000 missions are shown'];
    const html = await page('/missions');
    expect(html).toMatch(new RegExp(`href="/missions/${FIRST_GUID}"><bdi>Search North`));
    expect(html).toContain('data-label="Size of files">2 MB<');
    expect(html).toContain('data-label="Access">by invitation<');
    expect(html).toContain('Only the first 1000 missions are shown');
    expect(html).toContain(`href="/api/mission-archives/${ARCHIVE_ID}/content"`);
    expect(await page('/missions?search=NIGHT')).toContain('Search North');
    expect(await page('/missions?search=nothing')).toContain('No missions match “nothing”');
  });

  it('keeps an archive and deletes the mission, audited and confirmed', async () => {
    const { post, page, deps } = await visit();
    expect(await page(`/missions/${FIRST_GUID}`)).toMatch(
      /<details[^>]*>.*1 subscribed device.*Delete Search North<\/button>/s,
    );
    const archived = await post(`/missions/${FIRST_GUID}/archive`);
    expect([archived.status, archived.headers.get('location')]).toEqual([303, '/missions?done=archived#archives']);
    const deleted = await post(`/missions/${FIRST_GUID}/delete`);
    expect([deleted.status, deleted.headers.get('location')]).toEqual([303, '/missions?done=deleted']);
    expect(deps.missions.missions).toEqual([]);
    expect(
      actionsOf(deps)
        .slice(-4)
        .map(({ action, phase }) => `${action} ${phase}`),
    ).toEqual(['mission.archive intent', 'mission.archive outcome', 'mission.delete intent', 'mission.delete outcome']);
    expect((await post(`/missions/${FIRST_GUID}/delete`)).status).toBe(404);
  });

  it('restores and deletes archives, and says why it can not', async () => {
    const { post, page, deps } = await visit();
    expect((await post(`/missions/archives/${ARCHIVE_ID}/restore`)).headers.get('location')).toBe(
      '/missions?done=restored',
    );
    const again = await post(`/missions/archives/${ARCHIVE_ID}/restore`);
    expect([again.status, await again.text()]).toEqual([
      409,
      expect.stringContaining('A mission named Flood 2025 exists.'),
    ]);
    expect((await post(`/missions/archives/${ARCHIVE_ID}/delete`)).headers.get('location')).toBe(
      '/missions?done=forgotten',
    );
    expect(deps.missions.archives).toEqual([]);
    expect(await page('/missions')).toContain('No archives are kept.');
  });

  it('shows members, contents, log and changes, and only the first of very many', async () => {
    const { page, deps } = await visit({ username: 'vera' });
    const [item] = someMission().items;
    const items = Array.from({ length: 5_000 }, (_, at) => ({ ...item, uid: `m-${at}`, callsign: '' })) as never[];
    deps.missions.missions = [someMission({ items })];
    const html = await page(`/missions/${FIRST_GUID}`);
    expect(html).toContain('data-label="Role">Owner<');
    expect(html).toContain('Team 2 is at the hut');
    expect(html).toContain('Added: Base');
    expect(html).toContain('The first 200 of 5000.');
    expect(html.length).toBeLessThan(120_000);
    expect((await (await visit()).get('/missions/nothing')).status).toBe(404);
  });

  it('shows names as text, and nothing to press to who may only look', async () => {
    const { page, deps } = await visit({ username: 'vera' });
    const [member] = someMission().members;
    deps.missions.missions = [
      someMission({
        name: HOSTILE,
        description: HOSTILE,
        groups: [HOSTILE],
        keywords: [HOSTILE],
        members: [{ ...member, clientUid: HOSTILE, username: HOSTILE, role: HOSTILE } as never],
        log: [{ content: HOSTILE, author: HOSTILE, at: null }],
      }),
    ];
    deps.missions.archives = [someArchive({ name: HOSTILE })];
    for (const path of ['/missions', `/missions/${FIRST_GUID}`]) {
      const html = await page(path);
      expect(html).toContain('&quot;&gt;&lt;script&gt;alert(1)');
      expect(html).not.toMatch(/<script>|action="\/missions\/|\/content"/);
    }
  });

  it('says what is missing while the core is away', async () => {
    const { page, deps } = await visit();
    deps.missions.error = new AppError('unavailable', 'The core does not answer.');
    expect(await page('/missions')).toContain('Couldn&#39;t list the missions. The core does not answer.');
  });
});
