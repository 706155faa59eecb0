// The audit log as a worker has it: every call is JSON through the HOST binding.

import { hostBinding } from '../../shared/runtime/host-binding.ts';
import type { NodeDeps } from '../../shared/runtime/node-deps.ts';
import { hostCall, hostPort } from '../../shared/runtime/workerd-deps.ts';
import { fakeDeps } from '../http/fake-deps.ts';
import { auditContract } from './audit-contract.ts';
import { fakeAudit } from './fake-audit.ts';

const TOKEN = 'token-of-the-host-binding';

auditContract('behind the HOST binding', () => {
  const ended: string[] = [];
  const audit = fakeAudit(undefined, (username) => ended.push(username));
  const answer = hostBinding({ ...fakeDeps(), audit } as unknown as NodeDeps, TOKEN);
  const host = { fetch: async (url: string, init: RequestInit) => answer(new Request(url, init)) };
  return { audit: hostPort(hostCall(host, TOKEN), 'audit'), ended };
});
