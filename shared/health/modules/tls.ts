// Checks the certificate that each TLS endpoint presents: trust, name and days left.

import { counted } from '@holdfast/kit/format';
import type { TlsEndpoint, TlsState } from '../../host/port.ts';
import { type Finding, limitsOf } from '../evaluate.ts';
import { AFTER_FAILURE_SECONDS, hasJustStarted, healthModule } from '../module.ts';
import type { WantedContainer } from '../monitored.ts';
import { certificateEnds, daysUntil } from './issued-certificates.ts';

interface EndpointState extends TlsState {
  name: string;
  /** Whole days, rounded down; null if unreachable. */
  days_left: number | null;
  /** True while the reverse proxy that serves it has just started and is not ready. */
  starting: boolean;
}

const isUsable = ({ reachable, trusted }: TlsState): boolean => reachable && trusted;

export const tls = healthModule<{ least_days_left: number | null; endpoints: EndpointState[] }>({
  name: 'tls',
  isLocal: true,

  remedy: [
    'See which certificate the address presents: openssl s_client -connect HOST:PORT -servername HOST </dev/null | openssl x509 -noout -subject -issuer -dates',
    'If it is unreachable, start the service behind it: docker compose up -d with containers, ./scripts/start.sh --embedded --data DIR --detach for the embedded stack.',
    'If a public certificate is not renewed, check that ports 80 and 443 are open from the internet and that the name points here. Read the log of the reverse proxy (docker compose logs --tail 100 NAME).',
    'In the embedded stack, restart: ./scripts/stop.sh --data DIR, then start again. A certificate with 30 days left or less is renewed.',
  ],

  async read({ tls: endpoints, wanted, now, startedAt }) {
    const isNew = hasJustStarted(startedAt, now());
    const seen = await Promise.all(
      wanted.tlsEndpoints.map(async (endpoint): Promise<EndpointState> => {
        const state = await endpoints.inspect(endpoint);
        const starting = isNew && isOfProxy(endpoint, wanted.container) && !isUsable(state);
        return { name: endpoint.name, ...state, days_left: daysLeft(state, now()), starting };
      }),
    );
    const days = seen.flatMap(({ days_left }) => (days_left === null ? [] : [days_left]));
    return { least_days_left: days.length === 0 ? null : Math.min(...days), endpoints: seen };
  },

  findings({ endpoints }, thresholds) {
    return endpoints.map((endpoint): Finding => {
      const { name, error, days_left, starting } = endpoint;
      if (starting) return { kind: 'fact', status: 'note', says: `${name} ${error}; the stack has just started` };
      if (!isUsable(endpoint)) return { kind: 'fact', status: 'critical', says: `${name} ${error}` };
      return certificateEnds(name, days_left, thresholds);
    });
  },

  againSeconds: ({ endpoints }) => (endpoints.every(isUsable) ? undefined : AFTER_FAILURE_SECONDS),

  well: ({ endpoints, least_days_left }) =>
    endpoints.length === 0
      ? 'No public TLS endpoints to check.'
      : `${counted(endpoints.length, 'endpoint')} trusted. The first certificate expires in ${counted(least_days_left ?? 0, 'day')}.`,

  trend: {
    name: 'until the first expires',
    unit: 'days',
    limits: limitsOf,
    figureOf: ({ least_days_left }) => least_days_left,
  },
});

function isOfProxy({ address }: TlsEndpoint, container: WantedContainer | undefined): boolean {
  return address !== undefined && address === container?.proxyAddress;
}

function daysLeft({ expires_at }: TlsState, now: Date): number | null {
  return expires_at === undefined ? null : daysUntil(expires_at, now);
}
