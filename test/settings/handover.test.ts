// What a process is handed: workerd gets no more than it needs.

import { expect, it } from 'vitest';
import { forWorkerd, type Handover, loadSettings } from '../../shared/settings/load.ts';

const URL_OF_OWNER = 'postgres://martiuser:the%20password@127.0.0.1:5432/cot';

it('workerd knows that somebody may vacuum, and not as whom', () => {
  const values = { CORE_DATABASE_OWNER_URL: URL_OF_OWNER, DB_MAX_WAL_SIZE: '1GB' };
  const handover: Handover = { mode: 'embedded', layers: [{ source: 'stack', values }], dataPlaces: ['/data'] };
  const handed = forWorkerd(handover);
  expect(JSON.stringify(handed)).not.toMatch(/the.{1,3}password/);
  expect(loadSettings(handed.layers, 'embedded').settings.CORE_DATABASE_OWNER_URL).toBeDefined();
  expect(handed).toMatchObject({ mode: 'embedded', dataPlaces: ['/data'] });
  expect(handover.layers[0]?.values).toBe(values);
});

it('workerd knows that nobody may vacuum', () => {
  const unset: Handover = {
    mode: 'embedded',
    layers: [{ source: 'env file', values: { CORE_DATABASE_OWNER_URL: '' } }],
  };
  expect(forWorkerd(unset)).toEqual(unset);
});
