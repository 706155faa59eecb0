import { expect, it } from 'vitest';
import { dataPaths } from '../../shared/runtime/node-deps.ts';

it('the disk of mission archives is measured, which can be a volume of its own', () => {
  const places = { CORE_DATA_DIR: '/core', CORE_DATABASE_DIR: undefined, DATA_DIR: '/own', LOG_DIR: undefined };
  expect(dataPaths(places, ['/core'])).toEqual(['/', '/core', '/own/mission-archives']);
  expect(dataPaths({ ...places, DATA_DIR: undefined })).toEqual(['/', '/core']);
});
