// A role that may not see what others do could not tell a vacuum that runs from one that has ended: it is refused, with what helps.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BareServer, startBareServer } from '../../packages/setup/test/bare-server.ts';
import { readerOf } from './vacuum-world.ts';

const JOB = '00000000-0000-4000-8000-000000000001';

let server: BareServer;
beforeAll(async () => {
  server = await startBareServer();
});
afterAll(() => server.end());

it('nothing is known of statements without pg_monitor, which is told whom to grant it', async () => {
  const facts = readerOf(server.url('holdfast_ro'));
  expect(await facts.statement(JOB)).toBeUndefined();
  await server.ask('REVOKE pg_monitor FROM holdfast_ro');
  const message = expect.stringContaining('GRANT pg_monitor TO holdfast_ro;') as string;
  await expect(facts.statement(JOB)).rejects.toMatchObject({ code: 'unavailable', message });
  await expect(facts.server()).rejects.toMatchObject({ code: 'unavailable', message });
  await server.ask('GRANT pg_monitor TO holdfast_ro');
  expect(await facts.statement(JOB)).toBeUndefined();
});

it('a server that refuses the connection itself does not answer, whatever its reason', async () => {
  await server.ask('REVOKE CONNECT ON DATABASE cot FROM PUBLIC');
  const message = expect.stringContaining('permission denied for database "cot"') as string;
  await expect(readerOf(server.url('holdfast_ro')).tables()).rejects.toMatchObject({ code: 'unavailable', message });
  await server.ask('GRANT CONNECT ON DATABASE cot TO PUBLIC');
});

it('the owner sees what he has begun himself', async () => {
  expect(await readerOf(server.url('martiuser')).statement(JOB)).toBeUndefined();
});
