// What devices say when they do not come in, in their words, and what that means here.

import { Card } from '../pages/parts/card.tsx';
import type { GuideFacts } from './guide.ts';

interface Fault {
  /** In the words of the app. */
  said: string;
  meaning: string;
  remedy: string;
}

export function WhenItFails({ facts }: { facts: GuideFacts }) {
  return (
    <Card title="When it fails" id="when-it-fails">
      <p>
        <a href="/add-device">Add a device</a> looks at the whole way itself, and names the first thing that is wrong.
        By what the device says:
      </p>
      <ul class="faults">
        {faultsAt(facts).map(({ said, meaning, remedy }) => (
          <li>
            <h3>{said}</h3>
            <p>{meaning}</p>
            <p>
              <strong>Do:</strong> {remedy}
            </p>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function faultsAt({ host = 'the address', enrollment, streaming }: GuideFacts): Fault[] {
  return [
    {
      said: '“Connection failed: error sending request”, “certificate not trusted”',
      meaning: 'It does not know the certificate authority of this server, or knows an older one.',
      remedy: 'delete the half-made server entry on the device, open the package, and take a new code.',
    },
    {
      said: '“Unauthorized”, “401”, “invalid credentials”',
      meaning: 'The app password is over, or was typed wrongly.',
      remedy: 'take a new code. Type the app password, not your own, and look at capital letters.',
    },
    {
      said: '“Connection refused”, “timed out”',
      meaning: `The device does not reach ${host} at port ${enrollment}, or at port ${streaming} after that.`,
      remedy: 'try without Wi-Fi, then without VPN. If neither helps, tell an administrator both ports.',
    },
    {
      said: '“Too many requests”, “429”',
      meaning: 'Ten wrong passwords came from the network that you are in. It waits 15 minutes.',
      remedy: 'wait, or ask an administrator to free the address under Lock-outs.',
    },
    {
      said: 'Connected, but nobody is on the map',
      meaning: 'You are in another group than the others, or in none.',
      remedy: 'look at your groups under My account; an administrator changes them.',
    },
  ];
}
