// The certificate that each TLS endpoint shows right now: trusted, made out to its name, and how many days it has left.

import { counted } from '../domain/amounts.ts';
import type { Finding } from '../domain/evaluate.ts';
import type { TlsState } from '../ports/tls-endpoints.ts';
import { certificateEnds, daysUntil } from './certificate-end.ts';
import { healthModule } from './module.ts';

interface EndpointState extends TlsState {
  name: string;
  /** Whole days, rounded down; null when not reachable. */
  days_left: number | null;
}

export const tls = healthModule<{ least_days_left: number | null; endpoints: EndpointState[] }>({
  name: 'tls',

  remedy: [
    'See what the address shows: openssl s_client -connect HOST:PORT -servername HOST </dev/null | openssl x509 -noout -subject -issuer -dates',
    'If it is not reachable, start what serves it: docker compose up -d with containers, ./scripts/start.sh --embedded --data DIR --detach for the embedded stack.',
    'If a public certificate is not renewed, see that ports 80 and 443 are open from the internet and that the name leads here, and read the log of the reverse proxy (docker compose logs --tail 100 NAME).',
    'In the embedded stack restart: ./scripts/stop.sh --data DIR, then start again; a certificate with 30 days left or less is made anew.',
  ],

  async read({ tls: endpoints, wanted, now }) {
    const seen = await Promise.all(
      wanted.tlsEndpoints.map(async (endpoint): Promise<EndpointState> => {
        const state = await endpoints.inspect(endpoint);
        return { name: endpoint.name, ...state, days_left: daysLeft(state, now()) };
      }),
    );
    const days = seen.flatMap(({ days_left }) => (days_left === null ? [] : [days_left]));
    return { least_days_left: days.length === 0 ? null : Math.min(...days), endpoints: seen };
  },

  findings({ endpoints }, thresholds) {
    return endpoints.map(({ name, reachable, trusted, error, days_left }): Finding => {
      if (!reachable) return { kind: 'fact', status: 'critical', says: `${name} ${error}` };
      if (!trusted) return { kind: 'fact', status: 'critical', says: `${name} ${error}` };
      return certificateEnds(name, days_left, thresholds);
    });
  },

  well: ({ endpoints, least_days_left }) =>
    endpoints.length === 0
      ? 'There is no public TLS address to look at.'
      : `${counted(endpoints.length, 'endpoint')} trusted; the first certificate ends in ${counted(least_days_left ?? 0, 'day')}.`,
});

function daysLeft({ expires_at }: TlsState, now: Date): number | null {
  return expires_at === undefined ? null : daysUntil(expires_at, now);
}
