// What devices say when they do not come in, in their words, and what that means here.

import { Card } from '../pages/parts/card.tsx';
import { Table } from '../pages/parts/table.tsx';
import type { GuideFacts } from './guide.ts';

export function WhenItFails({ facts }: { facts: GuideFacts }) {
  const { host = 'the address', enrollment, streaming } = facts;
  return (
    <Card title="When it fails" id="when-it-fails">
      <p>
        <a href="/add-device">Add a device</a> looks at the whole way itself, and names the first thing that is wrong.
        What the device says:
      </p>
      <Table
        caption="Faults"
        columns={[{ label: 'The device says' }, { label: 'What it is' }, { label: 'What to do' }]}
        rows={[
          [
            'Connection failed: error sending request; or: certificate not trusted',
            'It does not know the certificate authority of this server, or knows an older one.',
            'Delete the half-made server entry on the device, open the package, and take a new code.',
          ],
          [
            'Unauthorized, 401, or: invalid credentials',
            'The enrollment password is over, or it was typed wrongly.',
            'Take a new code. Look at capital letters; type the enrollment password, not your own.',
          ],
          [
            'Connection refused, or: timed out',
            `The device does not reach ${host}:${enrollment}, or ${host}:${streaming} after that.`,
            'Try without Wi-Fi, then without VPN. If nothing helps, tell an administrator both ports.',
          ],
          [
            'Too many requests, 429',
            'Ten wrong passwords came from this network; it waits 15 minutes.',
            'Wait, or ask an administrator to free the address under Lock-outs.',
          ],
          [
            'Nothing, but you see nobody',
            'You are in another group than the others, or in none.',
            'See your groups under My account; an administrator changes them.',
          ],
        ]}
      />
    </Card>
  );
}
