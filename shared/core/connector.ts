// Connects to the core at the first of its addresses that can be reached. Nothing is sent before an
// address is connected, so no request is sent twice.

import type { SecureContext } from 'node:tls';
import { bareHost } from '@holdfast/kit/addresses';
import type { buildConnector } from 'undici';

const CONNECT_WITHIN_MS = 5_000;
/** Of each of several: three that swallow packets take less than the limit of a method. */
const NEXT_AFTER_MS = 2_000;

export class CoreConnector {
  readonly #targets: readonly { address: string; connect: (done: buildConnector.Callback, from?: string) => void }[];
  #at = 0;
  #isReached = false;
  #looking: Promise<boolean> | undefined;

  constructor(addresses: readonly string[], secureContext: SecureContext, build: typeof buildConnector) {
    const timeout = addresses.length > 1 ? NEXT_AFTER_MS : CONNECT_WITHIN_MS;
    this.#targets = addresses.map((address) => {
      const { protocol, host, hostname, port } = new URL(address);
      const target = { protocol, host, hostname: bareHost(hostname), port };
      const open = build({ allowH2: false, secureContext, timeout });
      return { address, connect: (done, from) => open({ ...target, ...(from && { localAddress: from }) }, done) };
    });
  }

  /** The address in use; undefined while none is known to be reachable. */
  get reached(): string | undefined {
    return this.#isReached ? this.#targets[this.#at]?.address : undefined;
  }

  /** For undici's pool: begins with the address that was reached last. */
  readonly connect: buildConnector.connector = ({ localAddress }, done) =>
    this.#attempt(this.#at, this.#targets.length, localAddress ?? undefined, done);

  #attempt(at: number, left: number, from: string | undefined, done: buildConnector.Callback): void {
    this.#targets[at]?.connect((...result) => {
      const [error] = result;
      if (error !== null && left > 1) {
        this.#attempt((at + 1) % this.#targets.length, left - 1, from, done);
        return;
      }
      this.#isReached = error === null;
      if (error === null) this.#at = at;
      done(...result);
    }, from);
  }

  /** Whether another address is in use although the first one can be reached again. */
  async isFirstBack(): Promise<boolean> {
    return this.#at > 0 && (this.#looking ??= this.#isFirstThere().finally(() => (this.#looking = undefined)));
  }

  #isFirstThere(): Promise<boolean> {
    return new Promise((resolve) =>
      this.#targets[0]?.connect((error, socket) => {
        socket?.destroy();
        resolve(error === null);
      }),
    );
  }
}
