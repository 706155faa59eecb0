import { opsJobsContract } from '../contract/ops-jobs.ts';
import { fakeOpsJobs } from '../fakes/ops-jobs.ts';

opsJobsContract('in memory', fakeOpsJobs);
