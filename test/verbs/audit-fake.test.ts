import { fakeAudit } from '../fakes/audit.ts';
import { auditContract } from '../contract/audit.ts';

auditContract('in memory', () => {
  const ended: string[] = [];
  return { audit: fakeAudit(undefined, (username) => ended.push(username)), ended };
});
