// Who hears what, held against a model that knows no lists kept ready: people come, go, change
// their groups and speak at random.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { cot, cotWorld, marti, membership, sa, settled, type TestClient } from './fake-cot-stream.ts';
import { runs } from '../../../test/support/runs.ts';

const PEOPLE = ['ada', 'bob', 'cid'];
const NAMES = ['x', 'y', 'z'];
/** Both directions, none of them twice: nobody has a membership twice. */
const GROUPS = [['Ops'], ['<Ops'], ['>Ops', '<Med'], ['Med'], ['>Med', 'Ops'], ['<Med', 'Air'], ['Ops', 'Med'], []];

interface Present {
  user: string;
  /** Of its uid and callsign. */
  name: string;
  client: TestClient;
  expected: string[];
}

const dest = fc.oneof(
  fc.constantFrom(...NAMES).map((name) => ({ uid: name, callsign: undefined, group: undefined })),
  fc.constantFrom(...NAMES).map((name) => ({ uid: undefined, callsign: name, group: undefined })),
  fc
    .tuple(fc.constantFrom(...NAMES), fc.constantFrom(...NAMES))
    .map(([uid, callsign]) => ({ uid, callsign, group: undefined })),
  fc.constantFrom('Ops', 'Med', 'Air', 'None').map((group) => ({ uid: undefined, callsign: undefined, group })),
  fc.constant({ uid: undefined, callsign: 'All Streaming', group: undefined }),
);
type Dest = { uid: string | undefined; callsign: string | undefined; group: string | undefined };
const who = fc.nat({ max: 20 });
const step = fc.oneof(
  fc.record({ does: fc.constant('join' as const), user: fc.constantFrom(...PEOPLE), name: fc.constantFrom(...NAMES) }),
  fc.record({ does: fc.constant('leave' as const), who }),
  fc.record({
    does: fc.constant('regroup' as const),
    user: fc.constantFrom(...PEOPLE),
    groups: fc.constantFrom(...GROUPS),
  }),
  fc.record({ does: fc.constant('say' as const), who, dests: fc.array(dest, { maxLength: 3 }), isChat: fc.boolean() }),
);

const attributes = ({ uid, callsign, group }: Dest): string =>
  [
    uid === undefined ? '' : `uid="u-${uid}"`,
    callsign === undefined ? '' : `callsign="${callsign === 'All Streaming' ? callsign : `c-${callsign}`}"`,
    group === undefined ? '' : `group="${group}"`,
  ].join(' ');

it('what everybody hears is what the groups, the directions and the destinations say, after any coming, going and changing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      const world = cotWorld();
      for (const user of PEOPLE) world.people.set(user, ['Ops']);
      /** In the order in which they came. */
      let present: Present[] = [];
      let reported = 0;
      const of = (user: string) => ((world.people.get(user) ?? []) as string[]).flatMap(membership);
      const sends = (from: Present) => of(from.user).flatMap((each) => (each.direction === 'IN' ? each.name : []));
      const receives = (to: Present) => of(to.user).flatMap((each) => (each.direction === 'OUT' ? each.name : []));
      const reaches = (from: Present, to: Present): boolean =>
        sends(from).some((group) => receives(to).includes(group));
      const hears = (to: Present, from: Present): boolean => to !== from && reaches(from, to);
      const saOf = (of: Present): string => `a-f-G-U-C u-${of.name}`;
      const oneOf = (index: number): Present | undefined => present[index % Math.max(1, present.length)];

      /** The newest connection of each person. */
      function found({ uid, callsign }: Dest, from: Present): Present[] {
        const newest = (name: string | undefined): Present[] => {
          const named = present.filter((each) => each.name === name);
          const heard = new Map(named.filter((each) => hears(each, from)).map((each) => [each.user, each]));
          return heard.size > 0 ? [...heard.values()] : named.filter((each) => each === from);
        };
        const byUid = newest(uid);
        return byUid.length > 0 ? byUid : newest(callsign);
      }

      function say(from: Present, dests: Dest[], event: string): void {
        const isBroadcast = dests.length === 0 || dests.some(({ callsign }) => callsign === 'All Streaming');
        const devices = dests.filter(({ group, callsign }) => group === undefined && callsign !== 'All Streaming');
        const reached = new Set(isBroadcast ? present.filter((each) => hears(each, from)) : []);
        for (const each of devices.flatMap((device) => found(device, from))) reached.add(each);
        const groups = dests.flatMap(({ group }) => group ?? []).filter((group) => sends(from).includes(group));
        for (const each of present) if (groups.some((group) => receives(each).includes(group))) reached.add(each);
        for (const each of reached) if (each !== from) each.expected.push(event);
        const isMissing = devices.some((each) => found(each, from).length === 0);
        if (isMissing && event.startsWith('b-t-f ')) from.expected.push(event.replace('b-t-f', 'b-t-f-s'));
      }

      for (const each of steps) {
        if (each.does === 'join') {
          const client = await world.join(each.user);
          const come: Present = { user: each.user, name: each.name, client, expected: [] };
          come.expected.push(...present.filter((other) => hears(come, other)).map(saOf), 't-x-takp-v');
          present.push(come);
          await client.say(sa(`u-${each.name}`, `c-${each.name}`));
          say(come, [], saOf(come));
        } else if (each.does === 'leave') {
          const gone = oneOf(each.who);
          if (gone === undefined) continue;
          present = present.filter((other) => other !== gone);
          await gone.client.leave();
          const namesakes = present.filter(({ name }) => name === gone.name);
          if (namesakes.every(({ user }) => user !== gone.user))
            for (const other of present)
              if (hears(other, gone) && !namesakes.some((each) => reaches(each, other))) other.expected.push('t-x-d-d');
        } else if (each.does === 'regroup') {
          const before = new Map(present.map((a) => [a, new Set(present.filter((b) => hears(a, b)))]));
          const was = of(each.user);
          world.people.set(each.user, each.groups.length === 0 ? ['__ANON__'] : each.groups);
          const key = (all: typeof was): string =>
            JSON.stringify([...new Set(all.map((one) => JSON.stringify(one)))].toSorted());
          if (key(was) !== key(of(each.user)))
            for (const a of present) if (a.user === each.user) a.expected.push('t-x-g-c');
          for (const a of present)
            for (const b of present) if (hears(a, b) && before.get(a)?.has(b) === false) a.expected.push(saOf(b));
          await world.stream.regroup([each.user], undefined);
          await settled();
        } else {
          const from = oneOf(each.who);
          if (from === undefined) continue;
          const type = each.isChat ? 'b-t-f' : 'a-h-G';
          const uid = `e-${reported++}`;
          const dests = each.dests.map(attributes);
          await from.client.say(cot(uid, type, dests.length === 0 ? '' : marti(...dests)));
          say(from, each.dests, `${type} ${uid}`);
        }
        for (const to of present) {
          const heard = to.client.names().map((name) => name.replace(/^(t-x-\S+) .*/, '$1'));
          // Devices of one person change one after the other: they may hear each other's report
          // again.
          const own = new Set(present.filter(({ user }) => user === to.user).map(saOf));
          const seen = (names: string[]): string[] =>
            each.does === 'regroup' ? names.filter((name) => !own.has(name)).toSorted() : names;
          expect(seen(heard)).toEqual(seen(to.expected));
          to.expected.splice(0);
          to.client.forget();
        }
      }
      await world.stream.close();
    }),
    { numRuns: runs(60) },
  );
}, 30_000);
