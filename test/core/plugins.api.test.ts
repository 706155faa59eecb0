import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { VIEWER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

const ECHO = {
  name: 'Echo 1',
  description: 'Says it again',
  version: '1.0',
  enabled: true,
  started: true,
  error: null,
};

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
  world.deps.theCore.plugins = [ECHO, { ...ECHO, name: 'Alarm', error: 'it broke' }].map((each) => ({ ...each }));
});

async function ask(method: string, path: string, headers?: Record<string, string>): Promise<[number, unknown]> {
  const response = await world.ask(method, path, undefined, headers);
  return [response.status, await response.json()];
}

describe('/api/plugins', () => {
  it('lists them by name', async () => {
    expect(await ask('GET', '/api/plugins', VIEWER)).toEqual([
      200,
      [{ ...ECHO, name: 'Alarm', error: 'it broke' }, ECHO],
    ]);
  });

  it.each([
    ['start', 'started', true],
    ['stop', 'started', false],
    ['enable', 'enabled', true],
    ['disable', 'enabled', false],
  ])('%ss one, shows it as it is then, and is audited', async (word, member, value) => {
    const before = { ...ECHO, [member]: !value };
    world.deps.theCore.plugins = [before];
    expect(await ask('POST', `/api/plugins/Echo%201/${word}`)).toEqual([200, { ...before, [member]: value }]);
    expect(world.deps.audit.records).toMatchObject([
      { action: `plugin.${word}`, target: 'Echo 1', phase: 'intent' },
      { action: `plugin.${word}`, phase: 'outcome', result: 'ok' },
    ]);
  });

  it('is 404 for an unknown plugin and for another verb', async () => {
    expect((await ask('POST', '/api/plugins/nothing/start'))[0]).toBe(404);
    expect((await ask('POST', '/api/plugins/Alarm/explode'))[0]).toBe(404);
  });

  it('is 503 while the plugin process is down', async () => {
    const down = async (): Promise<never> => {
      throw new AppError('unavailable', 'The plugin process of the core does not answer');
    };
    Object.assign(world.deps.core, { plugins: down, changePlugin: down });
    expect((await ask('GET', '/api/plugins'))[0]).toBe(503);
    expect((await ask('POST', '/api/plugins/Alarm/stop'))[0]).toBe(503);
    expect(world.deps.audit.records.at(-1)).toMatchObject({ phase: 'outcome', result: 'unknown' });
  });
});
