import { describe, expect, it } from 'vitest';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { type Change, Control } from '../mesh/control.ts';
import { settled } from './fake-cot-stream.ts';
import { MemoryHub } from './memory-bus.ts';

/** Two nodes; `read` is what the second one was told. */
function world() {
  const hub = new MemoryHub();
  const [bus, other] = [hub.bus(), hub.bus()];
  const read: Change[] = [];
  const [log, failed] = [memoryLog(), () => undefined];
  const control = new Control(bus, async () => undefined, failed, log);
  const listening = new Control(other, async (change) => void read.push(change), failed, log);
  return { bus, control, listening, read };
}

describe('a change on a node', () => {
  it('is told to the others once', async () => {
    const { bus, control, read } = world();
    control.tell({ changed: 'revocations', entries: [] });
    control.tell({ changed: 'groups', usernames: ['ada'], clientUid: 'uid-ada' });
    await settled();
    bus.turn(false);
    bus.turn(true);
    await settled();
    expect(read).toEqual([
      { changed: 'revocations', entries: [] },
      { changed: 'groups', usernames: ['ada'], clientUid: 'uid-ada' },
    ]);
  });

  it('that is cut off is told when it is back, all of one kind together', async () => {
    const { bus, control, read } = world();
    bus.turn(false);
    control.tell({ changed: 'revocations', entries: [] });
    control.tell({ changed: 'revocations', entries: [] });
    control.tell({ changed: 'groups', usernames: ['ada', 'ben'] });
    control.tell({ changed: 'groups', usernames: ['ben', 'cyd'] });
    control.tell({ changed: 'injectors' });
    await settled();
    bus.turn(true);
    await settled();
    expect(read).toEqual([
      { changed: 'revocations', entries: [] },
      { changed: 'groups', usernames: ['ada', 'ben', 'cyd'] },
      { changed: 'injectors' },
    ]);
  });
});
