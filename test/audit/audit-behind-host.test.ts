// The audit log as a worker has it: every call is JSON through the HOST binding.

import type { Audit } from '../../shared/audit/port.ts';
import { hostBinding } from '../../shared/runtime/host-binding.ts';
import { hostCall, hostPort } from '../../shared/runtime/workerd-deps.ts';
import { auditContract } from './audit-contract.ts';
import { fakeAudit } from './fake-audit.ts';

const TOKEN = 'token-of-the-host-binding';

auditContract('behind the HOST binding', () => {
  const ended: string[] = [];
  const audit = fakeAudit(undefined, (username) => ended.push(username));
  const answer = hostBinding({ audit }, TOKEN);
  const host = { fetch: async (url: string, init: RequestInit) => answer(new Request(url, init)) };
  return { audit: hostPort(hostCall(host, TOKEN), 'audit') as Audit, ended };
});
