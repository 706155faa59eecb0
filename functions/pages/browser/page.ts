// The script of all pages. Each works without it; with it they stay up to date, count and copy.

import { startCopying } from './copy.ts';
import { startFilters } from './filter.ts';
import { startForms } from './forms.ts';
import { lookAgain, startLive } from './live.ts';
import { startTimes } from './times.ts';

startCopying();
startFilters();
startForms();
startLive();
startTimes(lookAgain);
