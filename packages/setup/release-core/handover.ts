// Defines the handover to the role `release-core`: directory of the release and subject parts of
// certificates.

import { z } from 'zod';
import { takenHandover } from '@holdfast/kit/command';
import type { Problem } from '../../../shared/settings/setting.ts';
import type { Settings } from '../../../shared/settings/table.ts';
import { releaseHome } from '../release-files/handover.ts';

export const RELEASE_CORE_VARIABLE = 'HOLDFAST_RELEASE_CORE';

const handoverSchema = z.object({
  home: z.string(),
  /** Subject parts for the release's own scripts, by their variable names. */
  certificates: z.record(z.string(), z.string()),
});

export type ReleaseCoreHandover = z.infer<typeof handoverSchema>;

export function planReleaseCore(
  settings: Settings,
  environment: NodeJS.ProcessEnv,
  problems: Problem[],
): ReleaseCoreHandover {
  const home = releaseHome(environment);
  if (!home.startsWith('/'))
    problems.push({
      name: 'HOLDFAST_RELEASE_HOME',
      value: home,
      message: 'must be an absolute path',
      remedy: 'set it to an absolute path, or remove it',
    });
  const certificates = {
    COUNTRY: settings.CERTIFICATE_COUNTRY,
    STATE: settings.CERTIFICATE_STATE,
    CITY: settings.CERTIFICATE_CITY,
    ORGANIZATION: settings.CERTIFICATE_ORGANIZATION,
    ORGANIZATIONAL_UNIT: settings.CERTIFICATE_UNIT,
  };
  return { home, certificates };
}

/** Removes it from the environment. Throws if it is missing. */
export function takeReleaseCore(environment: NodeJS.ProcessEnv): ReleaseCoreHandover {
  return takenHandover(environment, RELEASE_CORE_VARIABLE, handoverSchema, 'start this as container.js release-core');
}
