// What administrators set on the stream: elements that are injected, and emergencies that are
// repeated.

import { describe, expect, it } from 'vitest';
import { DAY_MS } from '@holdfast/kit/time';
import { injectionFault } from '../stream/injectors.ts';
import { cot, cotWorld } from './fake-cot-stream.ts';

async function field() {
  const world = cotWorld();
  for (const [name, group] of Object.entries({ ada: 'Ops', bob: 'Ops', eve: 'Med' })) world.people.set(name, [group]);
  const clients = { ada: await world.report('ada'), bob: await world.report('bob'), eve: await world.report('eve') };
  for (const client of Object.values(clients)) client.forget();
  return { world, ...clients };
}

describe('an injector', () => {
  it('adds its elements to every event of its uid, for receivers and the history, and to no other', async () => {
    const { world, ada, bob } = await field();
    world.stream.injectors.replace([
      { uid: 'tank', toInject: 'color argb="-1"' },
      { uid: 'tank', toInject: "note text='a &amp; b'" },
    ]);
    const events = ['<contact callsign="T"/>', ''].map((detail) => cot('tank', 'a-h-G', detail));
    const bare = cot('tank', 'a-h-G').replace(/<detail>.*<\/detail>/, '');
    await ada.say(...events, events[0]!.replace(/<detail>.*<\/detail>/, '<detail/>'), bare, cot('other', 'a-h-G'));
    const heard = bob.heard();
    expect(heard).toHaveLength(5);
    for (const text of heard.slice(0, 4)) {
      expect(text).toContain(`<color argb="-1"/><note text='a &amp; b'/>`);
      expect(text.match(/<detail>/g)).toHaveLength(1);
    }
    expect(heard[4]).not.toContain('argb');
    expect(world.stored.filter(({ uid }) => uid === 'tank').every(({ detail }) => detail.includes('argb="-1"'))).toBe(
      true,
    );
    world.stream.injectors.replace([]);
    bob.forget();
    await ada.say(cot('tank', 'a-h-G'));
    expect(bob.heard()[0]).not.toContain('argb');
  });

  it('is one well-formed element that does not send the event elsewhere', () => {
    for (const good of ['a', 'color argb="-1"', "x.y-z a='1' b='2'"]) expect(injectionFault(good)).toBeUndefined();
    for (const bad of [
      '',
      ' a',
      '1a',
      'a b',
      'a b="',
      'a b="&x;"',
      'a/><b',
      'a b="<"',
      'marti x="1"',
      '_flow-tags_',
      `a b="${'x'.repeat(1000)}"`,
    ])
      expect(injectionFault(bad)).toEqual(expect.any(String));
  });
});

describe('an emergency', () => {
  const alarm = (uid = 'e-1', inside = '<emergency type="911 Alert">ADA</emergency>') =>
    cot(uid, 'b-a-o-tbl', `<contact callsign="ADA-Alert"/>${inside}`);

  it('is repeated to its groups alone until its sender cancels it', async () => {
    const { world, ada, bob, eve } = await field();
    await ada.say(alarm());
    const { repeater } = world.stream;
    expect(repeater.list()).toMatchObject([
      { uid: 'e-1', repeatType: '911 Alert', cotType: 'b-a-o-tbl', callsign: 'ADA-Alert', username: 'ada' },
    ]);
    bob.forget();
    repeater.repeat();
    await bob.say();
    expect(bob.names()).toEqual(['b-a-o-tbl e-1']);
    expect(bob.heard()[0]).toContain('<emergency type="911 Alert">ADA</emergency>');
    expect(eve.heard()).toEqual([]);
    // Another person gives the same uid.
    await eve.say(cot('e-1', 'b-a-o-can', '<emergency cancel="true">X</emergency>'));
    expect(repeater.list()).toHaveLength(1);
    await ada.say(cot('e-1', 'b-a-o-can', '<emergency cancel="true">ADA</emergency>'));
    expect(repeater.list()).toEqual([]);
  });

  it('is ended by an administrator for all who heard it', async () => {
    const { world, ada, bob } = await field();
    await ada.say(alarm());
    bob.forget();
    expect(world.stream.repeater.remove('e-1')).toBe(true);
    await bob.say();
    expect(bob.names()).toEqual(['b-a-o-can e-1']);
    expect(bob.heard()[0]).toContain('<emergency cancel="true">ADA-Alert</emergency>');
    expect(world.stream.repeater.remove('e-1')).toBe(false);
  });

  it('is bounded: few of each person, none too large, none for ever, none that is not begun by one', async () => {
    const { world, ada, bob } = await field();
    const { repeater } = world.stream;
    await ada.say(
      cot('p', 'b-a-o-tbl'),
      cot('q', 'a-f-G', '<emergency type="x"/>'),
      alarm('large', `<emergency type="x"/><a b="${'x'.repeat(20_000)}"/>`),
    );
    expect(repeater.list()).toEqual([]);
    for (let n = 0; n < 9; n++) await ada.say(alarm(`e-${n}`));
    expect(repeater.list()).toHaveLength(5);
    await bob.say(alarm('of bob'));
    expect(repeater.list()).toHaveLength(6);
    world.clock.at = new Date(world.clock.at.getTime() + DAY_MS + 1);
    repeater.repeat();
    expect(repeater.list()).toEqual([]);
  });

  it('comes again each period by itself, until the stream closes', async () => {
    const { world, ada, bob } = await field();
    const { repeater } = world.stream;
    repeater.periodMs = 10;
    await ada.say(alarm());
    bob.forget();
    await expect.poll(() => bob.names().length).toBeGreaterThan(1);
    await world.stream.close();
    bob.forget();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(bob.names()).toEqual([]);
  });
});
