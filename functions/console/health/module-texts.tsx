// What the health modules are called by somebody who knows radios and not databases, and what each looks at.

import { healthModuleOf } from '../../../shared/health/modules/index.ts';
import type { ModuleState } from '../../../shared/health/port.ts';
import type { Status, Thresholds } from '../../../shared/settings/status.ts';
import { type Clock, Distance, When } from '../../pages/parts/time.tsx';

interface ModuleWords {
  title: string;
  about: string;
  /** Where more of it stands, and where it is mended; the first is the one to go to. */
  pages?: readonly (readonly [path: string, label: string])[];
}

const MODULES: Readonly<Record<string, ModuleWords>> = {
  database: {
    title: 'Database',
    about:
      'Everything that was ever sent is kept here: how large it is, how fast it grows, and whether it still takes a write.',
    pages: [
      ['/database', 'Size over time and who fills it'],
      ['/database/retention', 'Retention: what is kept how long'],
      ['/database/vacuum', 'Vacuum: give room back to the disk'],
    ],
  },
  autovacuum: {
    title: 'Dead rows',
    about:
      'What was deleted leaves dead rows, which the database clears away by itself. Too many make it large and slow.',
    pages: [['/database/vacuum', 'Vacuum: clean up the database']],
  },
  retention: {
    title: 'Retention',
    about: 'How long events, chat and files are kept, and whether the old ones really go.',
    pages: [['/database/retention', 'Retention: what is kept how long']],
  },
  disk: { title: 'Disks', about: 'How full each disk of this stack is, and when it will be full.' },
  certificates: {
    title: 'Certificates',
    about:
      'Every certificate that lets a device or a service in, until when, and whether who was thrown out stays out.',
    pages: [['/certificates', 'All certificates']],
  },
  tls: { title: 'TLS addresses', about: 'The certificate that each address of this server shows to whoever connects.' },
  core: {
    title: 'Core server',
    about: 'The CoT server itself: its API, its enrollment port, the port that devices stream to, and its memory.',
    pages: [['/devices', 'Who is connected']],
  },
  identity: {
    title: 'Sign-in',
    about: 'Where names, passwords and groups are kept. Without it nobody new comes in.',
    pages: [['/people', 'People']],
  },
  probe: {
    title: 'Way of a device',
    about: 'A test device signs in, connects, sends an event and waits until it comes back: what a real device does.',
  },
  time: {
    title: 'Clocks',
    about: 'The clock of this machine against the others. Certificates need clocks that agree.',
  },
  dns: { title: 'Names (DNS)', about: 'Whether the names of this server lead to this machine.' },
  containers: { title: 'Containers', about: 'Whether every container of the stack runs and is healthy.' },
  config: {
    title: 'Configuration',
    about: 'Settings that were changed in their files and count only after a restart.',
  },
  updates: { title: 'Updates', about: 'Newer releases of what this stack is made of.' },
  alerts: {
    title: 'Alerting',
    about: 'Whether somebody is told when something breaks.',
    pages: [['/alerts', 'Alerts']],
  },
};

/** The name itself for a module that is not in the table. */
export function moduleWords(name: string): ModuleWords {
  return MODULES[name] ?? { title: name, about: '' };
}

interface SinceProps {
  since: string | null;
  exact: boolean;
  clock: Clock;
}

/** Since when something is as it is, and what the pages of health know of a module. */
export function Since({ since, exact, clock }: SinceProps) {
  if (since === null) return <>not measured yet</>;
  if (!exact)
    return (
      <>
        since <When at={since} clock={clock} /> or earlier
      </>
    );
  return (
    <>
      since <When at={since} clock={clock} />, <Distance at={since} clock={clock} />
    </>
  );
}

/** Not measured yet is a note, as the API has it. */
export function statusOf({ measurement }: ModuleState): Status {
  return measurement?.status ?? 'note';
}

/** What to do: about its findings first, then what helps in general; nothing while all is well. */
export function remediesOf({ module, measurement }: ModuleState): string[] {
  if (measurement === null || measurement.status === 'ok') return [];
  return [...measurement.remedies, ...(healthModuleOf(module)?.remedy ?? [])];
}

/** The thresholds of the figure that its trend shows. */
export function trendLimits(module: string, thresholds: Thresholds): { warning?: number; critical?: number } {
  const own = thresholds.modules[module];
  return own === undefined ? {} : (healthModuleOf(module)?.trend?.limits?.(own) ?? {});
}
