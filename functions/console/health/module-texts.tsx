// Names the health modules for people who know radios, not databases, and says what each one
// checks.

import { healthModuleOf } from '../../../shared/health/modules/index.ts';
import type { ModuleState } from '../../../shared/health/port.ts';
import type { Status, Thresholds } from '../../../shared/settings/status.ts';
import { type Clock, Distance, When } from '../../pages/parts/time.tsx';

interface ModuleWords {
  title: string;
  about: string;
  /** Pages with details and fixes; the first one gets the button. */
  pages?: readonly (readonly [path: string, label: string])[];
}

const MODULES: Readonly<Record<string, ModuleWords>> = {
  database: {
    title: 'Database',
    about: 'Stores positions, chat and files. Checks its size, its growth and a test write.',
    pages: [
      ['/database', 'Database size'],
      ['/database/retention', 'Retention policy'],
      ['/database/vacuum', 'Free disk space'],
    ],
  },
  autovacuum: {
    title: 'Dead rows',
    about: 'Deleted data leaves dead rows. The database clears them by itself; too many make it large and slow.',
    pages: [['/database/vacuum', 'Vacuum']],
  },
  retention: {
    title: 'Retention',
    about: 'How long events, chat and files are kept, and if the old ones are deleted.',
    pages: [['/database/retention', 'Retention policy']],
  },
  disk: { title: 'Disks', about: 'How full each disk is, and when it will run out of space.' },
  certificates: {
    title: 'Certificates',
    about: 'When certificates of devices and services expire, and if revoked ones are rejected.',
    pages: [['/certificates', 'All certificates']],
  },
  tls: { title: 'TLS endpoints', about: 'The certificate that each address of this server presents.' },
  core: {
    title: 'Core server',
    about: 'The CoT server: its API, its enrollment port, its streaming port and its memory.',
    pages: [['/devices', 'Devices']],
  },
  identity: {
    title: 'Sign-in',
    about: 'The directory of users, passwords and groups. Without it, no new sign-ins or connections.',
    pages: [['/people', 'People']],
  },
  probe: {
    title: 'Connection check',
    about: 'A test device signs in, connects, sends an event and waits for it, as a real device would.',
  },
  time: {
    title: 'Clocks',
    about: 'The clock of this machine compared with the others. Certificates need clocks that agree.',
  },
  dns: { title: 'DNS', about: 'Checks that the names of this server point to this machine.' },
  containers: { title: 'Containers', about: 'Checks that every container of the stack is running and healthy.' },
  config: {
    title: 'Configuration',
    about: 'Settings changed in their files that need a restart to take effect.',
  },
  updates: { title: 'Updates', about: 'Newer releases of the software in this stack.' },
  backup: {
    title: 'Backups',
    about: 'If backups are made and proven, how old the last proven one is, and how many more fit.',
    pages: [['/backups', 'Backups']],
  },
  alerts: {
    title: 'Alerts',
    about: 'Checks that alerts reach their recipients.',
    pages: [['/alerts', 'All alerts']],
  },
};

/** Falls back to the name itself for an unknown module. */
export function moduleWords(name: string): ModuleWords {
  return MODULES[name] ?? { title: name, about: '' };
}

interface SinceProps {
  since: string | null;
  exact: boolean;
  clock: Clock;
  /** Leaves out "or earlier": the page says it once. */
  short?: boolean;
}

/** Shows since when a status lasts. */
export function Since({ since, exact, clock, short = false }: SinceProps) {
  if (since === null) return <>not measured yet</>;
  if (!exact)
    return (
      <>
        since <When at={since} clock={clock} />
        {short ? '' : ' or earlier'}
      </>
    );
  return (
    <>
      since <When at={since} clock={clock} />, <Distance at={since} clock={clock} />
    </>
  );
}

/** A module that was not measured yet has the status `note`, as in the API. */
export function statusOf({ measurement }: ModuleState): Status {
  return measurement?.status ?? 'note';
}

/** Remedies for the findings first, then general ones; none while the module is OK. */
export function remediesOf({ module, measurement }: ModuleState): string[] {
  if (measurement === null || measurement.status === 'ok') return [];
  return [...measurement.remedies, ...(healthModuleOf(module)?.remedy ?? [])];
}

/** The thresholds of the figure in the module's trend. */
export function trendLimits(module: string, thresholds: Thresholds): { warning?: number; critical?: number } {
  const own = thresholds.modules[module];
  return own === undefined ? {} : (healthModuleOf(module)?.trend?.limits?.(own) ?? {});
}
