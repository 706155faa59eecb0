// Who is told of alerts, by which channel, and a test of each.

import { counted } from '../../shared/domain/amounts.ts';
import { maskRecipient } from '../../shared/domain/masking.ts';
import { type Channel, CHANNELS, type Outlet, type Outlets } from '../../shared/ports/notifier.ts';
import { SET_UP } from '../../shared/verbs/send-test-message.ts';
import { Card } from '../pages/parts/card.tsx';
import { Confirm } from '../pages/parts/confirm.tsx';
import { Warning } from '../pages/parts/notice.tsx';
import { StatusBadge } from '../pages/parts/status.tsx';
import { CHANNEL_NAMES } from './alert-words.ts';

interface AlertChannelsProps {
  outlets: Outlets;
  /** Where a test is asked for; undefined: whoever looks may not. */
  testAction: string | undefined;
}

export function AlertChannels({ outlets, testAction }: AlertChannelsProps) {
  return (
    <section id="channels" aria-labelledby="told">
      <h2 id="told">Who is told</h2>
      {CHANNELS.some((channel) => isSetUp(outlets[channel])) ? null : (
        <Warning>
          <strong>Nobody is told of anything.</strong> Alerts are only written down here until one of these is set up.
        </Warning>
      )}
      <div class="cards">
        {CHANNELS.map((channel) => {
          const outlet = outlets[channel];
          return isSetUp(outlet) ? (
            <SetUp channel={channel} outlet={outlet} testAction={testAction} />
          ) : (
            <Card title={CHANNEL_NAMES[channel]} aside={<StatusBadge status="note">Not set up</StatusBadge>}>
              <p>{SET_UP[channel]}</p>
            </Card>
          );
        })}
      </div>
    </section>
  );
}

function isSetUp(outlet: Outlet | undefined): outlet is Outlet {
  return outlet !== undefined && outlet.recipients.length > 0;
}

/** `2 recipients: d***@example.org, o***@example.org`. */
export function recipientsInWords({ recipients }: Outlet): string {
  return `${counted(recipients.length, 'recipient')}: ${recipients.map(maskRecipient).join(', ')}`;
}

interface SetUpProps {
  channel: Channel;
  outlet: Outlet;
  testAction: string | undefined;
}

function SetUp({ channel, outlet, testAction }: SetUpProps) {
  return (
    <Card title={CHANNEL_NAMES[channel]} aside={<StatusBadge status="ok">Set up</StatusBadge>}>
      <p>
        By {outlet.by}, {recipientsInWords(outlet)}
      </p>
      {testAction === undefined ? null : (
        <Confirm label="Send a test…" action={testAction} button="Send the test now" danger={false}>
          <input type="hidden" name="channel" value={channel} />
          <p>Each of them gets a message that says it is a test.</p>
        </Confirm>
      )}
    </Card>
  );
}
