// Runs the role `identity-setup`.

import { identitySetup } from '@holdfast/setup/identity/setup';

await identitySetup(process.env);
