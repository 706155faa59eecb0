// How many requests of one account are worked on at once, over all its connections: one person's searches do not take the
// database from the others.

interface Account {
  running: number;
  waiting: Set<() => void>;
}

/** Runs the work when its turn comes; rejects with the reason of the signal when that is aborted before. */
export type InTurn = <T>(key: string, signal: AbortSignal, work: () => Promise<T>) => Promise<T>;

export function turns(atOnce: number): InTurn {
  const accounts = new Map<string, Account>();

  return async function inTurn(key, signal, work) {
    const account = accounts.get(key) ?? { running: 0, waiting: new Set() };
    accounts.set(key, account);
    while (account.running >= atOnce && !signal.aborted) await wokenOrAborted(account.waiting, signal);
    if (signal.aborted) {
      if (account.running < atOnce) wakeNext(account);
      signal.throwIfAborted();
    }
    account.running += 1;
    try {
      return await work();
    } finally {
      account.running -= 1;
      wakeNext(account);
      if (account.running === 0 && account.waiting.size === 0) accounts.delete(key);
    }
  };
}

function wakeNext({ waiting }: Account): void {
  const [next] = waiting;
  next?.();
}

async function wokenOrAborted(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const wake = (): void => {
      waiting.delete(wake);
      signal.removeEventListener('abort', wake);
      resolve();
    };
    waiting.add(wake);
    signal.addEventListener('abort', wake, { once: true });
  });
}
