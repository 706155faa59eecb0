// Limits how many password checks run at once, and decides who goes first: a flood of guesses takes
// neither the memory of the process nor the turn of honest clients. Guesses for one name wait
// behind each other, not before everybody else.

/**
 * Who waits before whom: `own` are the stack's own accounts, `proven` a name that has signed in
 * from that address, `suspect` an address with failures or with many attempts at once.
 */
export type ClientStatus = 'own' | 'proven' | 'usual' | 'suspect';

export interface Place {
  status: ClientStatus;
  /**
   * Groups of the same standing take turns, and within a group its keys. Default: one group, one
   * key.
   */
  group?: string;
  key?: string;
}

export interface FairLineOptions {
  places: number;
  /** Of them for suspects; default: all but one. */
  suspectPlaces?: number;
  /** How many may wait, for each standing: one full line does not fill the others. */
  maxWaiting?: Partial<Record<ClientStatus, number>>;
  /**
   * How many times as long as its work took the place of a suspect stays empty afterwards: a flood
   * takes a quarter of it.
   */
  suspectRest?: number;
}

const ORDER: readonly ClientStatus[] = ['own', 'proven', 'usual', 'suspect'];
const MAX_WAITING = 256;
const SUSPECT_REST = 3;

/**
 * Suspects never take the last place, unless there is only one, and leave theirs empty for a while.
 */
export class FairLine {
  readonly #places: number;
  readonly #suspectPlaces: number;
  readonly #suspectRest: number;
  readonly #most: Readonly<Record<ClientStatus, number>>;
  readonly #waiting = {
    own: new TurnQueue(),
    proven: new TurnQueue(),
    usual: new TurnQueue(),
    suspect: new TurnQueue(),
  } satisfies Record<ClientStatus, unknown>;
  #running = 0;
  #suspectsRunning = 0;

  constructor({ places, suspectPlaces, maxWaiting = {}, suspectRest = SUSPECT_REST }: FairLineOptions) {
    this.#places = Math.max(1, places);
    this.#suspectPlaces = suspectPlaces ?? Math.max(1, this.#places - 1);
    this.#suspectRest = suspectRest;
    const most = MAX_WAITING;
    this.#most = { own: most, proven: most, usual: most, suspect: most, ...maxWaiting };
  }

  /**
   * Does the work when its turn comes. Undefined when so many wait that its turn would never come,
   * and when it is not wanted any more by then. In a full line whoever came last for the key with
   * the most waiting gives way to others.
   */
  async run<T>(
    { status, group = '', key = '' }: Place,
    work: () => Promise<T>,
    wanted = () => true,
  ): Promise<T | undefined> {
    const waiting = this.#waiting[status];
    if (this.#hasPlaceFor(status)) this.#take(status);
    else {
      const hasTurn = new Promise<boolean>((begin) => waiting.push(group, key, begin));
      if (waiting.size > this.#most[status]) waiting.reject();
      if (!(await hasTurn)) return undefined;
    }
    const begunMs = performance.now();
    try {
      return wanted() ? await work() : undefined;
    } finally {
      this.#leave(status, performance.now() - begunMs);
    }
  }

  /** How many wait, for tests and figures. */
  waiting(): Record<ClientStatus, number> {
    const { own, proven, usual, suspect } = this.#waiting;
    return { own: own.size, proven: proven.size, usual: usual.size, suspect: suspect.size };
  }

  #hasPlaceFor(accountStatus: ClientStatus): boolean {
    return this.#running < this.#places && (accountStatus !== 'suspect' || this.#suspectsRunning < this.#suspectPlaces);
  }

  #take(state: ClientStatus): void {
    this.#running += 1;
    if (state === 'suspect') this.#suspectsRunning += 1;
  }

  #leave(rank: ClientStatus, tookMs: number): void {
    this.#running -= 1;
    if (rank === 'suspect') this.#afterRest(this.#suspectRest * tookMs);
    this.#beginNext();
  }

  #afterRest(ms: number): void {
    const end = (): void => {
      this.#suspectsRunning -= 1;
      this.#beginNext();
    };
    if (ms > 0) setTimeout(end, ms);
    else end();
  }

  #beginNext(): void {
    for (const clientRank of ORDER) {
      const waiting = this.#waiting[clientRank];
      if (waiting.size === 0 || !this.#hasPlaceFor(clientRank)) continue;
      this.#take(clientRank);
      waiting.shift()?.(true);
      return;
    }
  }
}

/** False: it is turned away. */
type Begin = (hasTurn: boolean) => void;

/** A queue in which groups take turns, and within a group its keys. */
class TurnQueue {
  readonly #groups = new Map<string, Map<string, Begin[]>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(group: string, key: string, begin: Begin): void {
    const keys = this.#groups.get(group) ?? new Map<string, Begin[]>();
    const line = keys.get(key) ?? [];
    line.push(begin);
    keys.set(key, line);
    this.#groups.set(group, keys);
    this.#size += 1;
  }

  shift(): Begin | undefined {
    const [group, keys] = firstOf(this.#groups) ?? [];
    const [key, line] = keys === undefined ? [] : (firstOf(keys) ?? []);
    if (group === undefined || keys === undefined || key === undefined || line === undefined) return undefined;
    const begin = line.shift();
    this.#size -= 1;
    toEnd(keys, key, line.length > 0);
    toEnd(this.#groups, group, keys.size > 0);
    return begin;
  }

  /** The newest of the key with the most waiting; among equals of the one that came last. */
  reject(): void {
    let longest: { group: string; key: string; line: Begin[] } | undefined;
    for (const [group, keys] of this.#groups)
      for (const [key, line] of keys)
        if (longest === undefined || line.length >= longest.line.length) longest = { group, key, line };
    if (longest === undefined) return;
    const { group, key, line } = longest;
    line.pop()?.(false);
    this.#size -= 1;
    const keys = this.#groups.get(group);
    if (line.length === 0) keys?.delete(key);
    if (keys?.size === 0) this.#groups.delete(group);
  }
}

function firstOf<V>(map: ReadonlyMap<string, V>): [string, V] | undefined {
  for (const entry of map) return entry;
  return undefined;
}

/** Behind the others, or gone. */
function toEnd<V>(map: Map<string, V>, key: string, stays: boolean): void {
  const value = map.get(key);
  map.delete(key);
  if (stays && value !== undefined) map.set(key, value);
}
