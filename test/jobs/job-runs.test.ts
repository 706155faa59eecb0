import { fakeJobRuns } from '../health/fake-monitored.ts';
import { jobRunsContract } from './job-runs-contract.ts';

jobRunsContract('in memory', () => fakeJobRuns());
