// An alert as people see it: addresses of those who are told are masked, for who reads alerts need not know them.

import { maskAddresses, maskRecipient } from '@holdfast/kit/text';
import type { Alert } from './port.ts';

export interface AlertAddresses {
  ALERT_EMAIL_TO?: readonly string[] | undefined;
  ALERT_SMS_TO?: readonly string[] | undefined;
}

/** Services repeat addresses in what they say. */
export function shownAlert(alert: Alert, settings: AlertAddresses): Alert {
  const known = [
    ...alert.deliveries.map(({ recipient }) => recipient),
    ...(settings.ALERT_EMAIL_TO ?? []),
    ...(settings.ALERT_SMS_TO ?? []),
  ];
  const hide = (text: string): string => maskAddresses(text, known);
  return {
    ...alert,
    reason: alert.reason === null ? null : hide(alert.reason),
    deliveries: alert.deliveries.map((each) => ({
      ...each,
      recipient: maskRecipient(each.recipient),
      detail: hide(each.detail),
    })),
  };
}
