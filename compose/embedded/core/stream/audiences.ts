// Who receives what is sent into a set of groups. What is asked for at every event is kept ready, and changes with each client
// that comes, goes or changes its groups: no event looks through all the clients.

/** Live: it changes as clients come and go. */
export interface Audience<T> {
  /** Ascending; the same array for the same set. */
  readonly places: readonly number[];
  readonly members: readonly T[];
  has(member: T): boolean;
}

export interface Audiences<T> {
  /** Takes in a member, or its new places. */
  place(member: T, receivesFrom: readonly number[]): void;
  leave(member: T): void;
  /** Kept until it is released as often as it was held. `places` in any order. */
  hold(places: readonly number[]): Audience<T>;
  release(audience: Audience<T>): void;
  /** Who receives from one of these groups, as it is now. */
  among(places: readonly number[]): ReadonlySet<T>;
}

interface Held<T> extends Audience<T> {
  key: string;
  holders: number;
  members: T[];
  /** Where each member stands in `members`. */
  positions: Map<T, number>;
}

const NOBODY: ReadonlySet<never> = new Set();

export function createAudiences<T>(): Audiences<T> {
  const byPlace = new Map<number, Set<T>>();
  const placesOf = new Map<T, readonly number[]>();
  const held = new Map<string, Held<T>>();

  function among(places: readonly number[]): ReadonlySet<T> {
    const [only] = places;
    if (only === undefined) return NOBODY;
    if (places.length === 1) return byPlace.get(only) ?? NOBODY;
    const all = new Set<T>();
    for (const place of places) for (const member of byPlace.get(place) ?? NOBODY) all.add(member);
    return all;
  }

  function enter(audience: Held<T>, member: T): void {
    if (audience.positions.has(member)) return;
    audience.positions.set(member, audience.members.length);
    audience.members.push(member);
  }

  /** The last one takes the place of whoever leaves. */
  function exit({ positions, members }: Held<T>, member: T): void {
    const at = positions.get(member);
    if (at === undefined) return;
    positions.delete(member);
    const last = members.pop();
    if (last === undefined || last === member) return;
    members[at] = last;
    positions.set(last, at);
  }

  function place(member: T, receivesFrom: readonly number[]): void {
    leave(member);
    placesOf.set(member, receivesFrom);
    for (const each of receivesFrom) byPlace.set(each, (byPlace.get(each) ?? new Set()).add(member));
    const received = new Set(receivesFrom);
    for (const audience of held.values())
      if (audience.places.some((each) => received.has(each))) enter(audience, member);
  }

  function leave(member: T): void {
    for (const each of placesOf.get(member) ?? []) {
      const members = byPlace.get(each);
      members?.delete(member);
      if (members?.size === 0) byPlace.delete(each);
    }
    if (placesOf.delete(member)) for (const audience of held.values()) exit(audience, member);
  }

  function hold(places: readonly number[]): Audience<T> {
    const sorted = [...new Set(places)].toSorted((a, b) => a - b);
    const key = sorted.join();
    let audience = held.get(key);
    if (audience === undefined) {
      const members = [...among(sorted)];
      const positions = new Map(members.map((member, at) => [member, at]));
      audience = { key, holders: 0, places: sorted, members, positions, has: (member) => positions.has(member) };
      held.set(key, audience);
    }
    audience.holders++;
    return audience;
  }

  function release(audience: Audience<T>): void {
    const known = held.get(audience.places.join());
    if (known !== audience || known === undefined) return;
    known.holders--;
    if (known.holders === 0) held.delete(known.key);
  }

  return { place, leave, hold, release, among };
}
