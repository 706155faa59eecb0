import { fakeOpsJobs } from './fake-ops-jobs.ts';
import { opsJobsContract } from './ops-jobs-contract.ts';

opsJobsContract('in memory', fakeOpsJobs);
