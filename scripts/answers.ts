// Runs the health check of our image: `answers.js ROLE`.

import { checkHealth } from '@holdfast/setup/containers/answers';

checkHealth(process.argv[2]);
