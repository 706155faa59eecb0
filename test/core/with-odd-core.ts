// An odd core for the tests of one file, and a client of it that is new for each test.

import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type HttpCore, httpCore } from '../../shared/core/http.ts';
import { type OddCore, oddCore } from './fake-odd-core.ts';

/** Hands both over before each test; what the core was asked is forgotten after it. */
export function withOddCore(use: (server: OddCore, core: HttpCore) => void): void {
  let server: OddCore;
  let core: HttpCore;
  beforeAll(async () => {
    server = await oddCore();
  });
  afterAll(() => server.end());
  beforeEach(() => {
    core = httpCore({ url: server.url, dataDir: server.dataDir });
    use(server, core);
  });
  afterEach(async () => {
    await core.close();
    server.requests.length = 0;
    server.met.length = 0;
  });
}
