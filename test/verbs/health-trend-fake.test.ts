import { healthTrendContract } from '../contract/health-trend.ts';
import { fakeHealthTrend } from '../fakes/health-trend.ts';

healthTrendContract('in memory', fakeHealthTrend);
