// Who answers CORE_ENROLLMENT_PORT of the host is decided by the compose layers, the mode by DEPLOY_MODE. Where the two
// do not go together no device could enroll, or none would trust what it meets: then management does not start.

import type { Problem } from '../../shared/config/problem.ts';
import type { Settings } from '../../shared/config/settings.ts';

const DIRECT_LAYER = 'compose/compose.direct.yaml';
const LAYERS_SAY = 'HOLDFAST_ENROLLMENT_BY';

/** Nothing where no layer says who answers: a run of our programs without Compose. */
export function enrollmentBindingProblems(
  environment: Readonly<Record<string, string | undefined>>,
  { DEPLOY_MODE: mode }: Pick<Settings, 'DEPLOY_MODE'>,
): Problem[] {
  const answering = environment[LAYERS_SAY]?.trim() ?? '';
  if (answering === '' || mode === undefined) return [];
  if (answering !== 'caddy' && answering !== 'core') {
    return [
      {
        name: LAYERS_SAY,
        value: answering,
        message: 'must be caddy or core',
        remedy: `leave it to the layers: ${DIRECT_LAYER} says core, without it Caddy answers`,
      },
    ];
  }
  if ((mode === 'direct') === (answering === 'core')) return [];
  return [mode === 'direct' ? layerMissing : layerTooMany];
}

const layerMissing: Problem = {
  name: 'DEPLOY_MODE',
  value: 'direct',
  message: `does not go with the layers: without ${DIRECT_LAYER} nobody answers enrollment`,
  remedy: `add ${DIRECT_LAYER} behind compose/compose.light.yaml in COMPOSE_FILE, or set DEPLOY_MODE=subdomain`,
};

const layerTooMany: Problem = {
  name: 'DEPLOY_MODE',
  value: 'subdomain',
  message: `does not go with the layers: with ${DIRECT_LAYER} the core answers enrollment, and phones refuse its certificate`,
  remedy: `take ${DIRECT_LAYER} out of COMPOSE_FILE, or set DEPLOY_MODE=direct`,
};
