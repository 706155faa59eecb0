// Runs the role `container-proxy`.

import { runContainerProxy } from '@holdfast/setup/containers/container-proxy';

runContainerProxy(process.env);
