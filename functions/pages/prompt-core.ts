// Pages do not wait for a core that hangs: whoever looks at one gets the rest of it, while the script of an open page still listens.

import type { Deps, Together } from '../../shared/http/deps.ts';
import { inTime } from '../../shared/verbs/in-time.ts';

/** The script of a page takes a connection for lost after 10 s. */
const WITHIN_MS = 6_000;

const READS: Partial<Record<keyof Deps, readonly string[]>> = {
  core: ['certificates', 'certificate', 'clients', 'plugins', 'status', 'enrollmentAttempts'],
  coreRetention: ['policy', 'schedule', 'runs', 'missionArchiving'],
};

/** What is shared of these is an answer of the core, and who comes second waits for the first; other work takes its time. */
const CORE_LISTS = /^(?:clients$|certificates:|attempts:)/;

/** The same deps; what they read of the core comes within 6 s, or is `unavailable`. */
export function withPromptCore(deps: Deps): Deps {
  return new Proxy(deps, {
    get(target, name) {
      if (name === 'together') return promptTogether(target.together);
      const port: unknown = Reflect.get(target, name);
      const reads = READS[name as keyof Deps];
      return reads === undefined ? port : promptPort(port as object, reads);
    },
  });
}

function promptPort(port: object, reads: readonly string[]): object {
  return new Proxy(port, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      return reads.includes(String(name)) ? promptly(method as Ask) : method;
    },
  });
}

function promptTogether(together: Together): Together {
  const prompt = promptly(together);
  return (key, work) => (CORE_LISTS.test(key) ? prompt : together)(key, work);
}

type Ask = (...given: never[]) => Promise<unknown>;

function promptly<A extends Ask>(ask: A): A {
  return ((...given: never[]) => inTime(WITHIN_MS, 'The core', () => ask(...given))) as A;
}
