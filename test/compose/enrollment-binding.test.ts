// DEPLOY_MODE and the compose layers never contradict each other in silence.

import { describe, expect, it } from 'vitest';
import { enrollmentBindingProblems } from '../../compose/containers/enrollment-binding.ts';
import { describeProblem } from '../../shared/config/problem.ts';

const judge = (answering: string | undefined, mode: 'direct' | 'subdomain' | undefined): string[] =>
  enrollmentBindingProblems(answering === undefined ? {} : { HOLDFAST_ENROLLMENT_BY: answering }, {
    DEPLOY_MODE: mode,
  }).map(describeProblem);

describe('who answers enrollment', () => {
  it.each([
    ['caddy', 'subdomain'],
    ['core', 'direct'],
    [undefined, 'direct'],
    [undefined, 'subdomain'],
    ['', 'direct'],
    ['core', undefined],
  ] as const)('%s with mode %s is right', (answering, mode) => expect(judge(answering, mode)).toEqual([]));

  it('direct mode without its layer is refused, naming the layer', () => {
    expect(judge('caddy', 'direct')).toEqual([
      expect.stringMatching(
        /^DEPLOY_MODE=direct: .*without compose\/compose\.direct\.yaml nobody answers enrollment\n {4}Remedy: add /,
      ),
    ]);
  });

  it('the layer of direct mode in subdomain mode is refused, naming the layer', () => {
    expect(judge('core', 'subdomain')).toEqual([
      expect.stringMatching(/^DEPLOY_MODE=subdomain: .*with compose\/compose\.direct\.yaml .*\n {4}Remedy: take /),
    ]);
  });

  it('a word that no layer says is refused', () => {
    expect(judge('traefik', 'direct')).toEqual([
      expect.stringContaining('HOLDFAST_ENROLLMENT_BY=traefik: must be caddy or core'),
    ]);
  });
});
