import { fakeHealthTrend } from './fake-health-trend.ts';
import { healthTrendContract } from './health-trend-contract.ts';

healthTrendContract('in memory', fakeHealthTrend);
