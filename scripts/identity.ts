// Runs the embedded identity provider.

import { runIdentity } from '@holdfast/stack/identity-process';

runIdentity(process.env);
