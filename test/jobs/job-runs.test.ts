import { jobRunsContract } from '../contract/job-runs.ts';
import { fakeJobRuns } from '../fakes/monitored.ts';

jobRunsContract('in memory', () => fakeJobRuns());
