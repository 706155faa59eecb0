import { auditContract } from './audit-contract.ts';
import { fakeAudit } from './fake-audit.ts';

auditContract('in memory', () => {
  const ended: string[] = [];
  return { audit: fakeAudit(undefined, (username) => ended.push(username)), ended };
});
