import { describe, expect, it } from 'vitest';
import { isOwnServiceAccount, isServiceAccountName, isShownServiceAccount, kindOf, readServiceName } from '../names.ts';

describe('the name of a service account', () => {
  it.each([
    ['backup', 'svc_backup'],
    ['svc_backup', 'svc_backup'],
    ['SVC_Backup.1-x', 'svc_Backup.1-x'],
    ['svc_svc_a', 'svc_svc_a'],
    ['a'.repeat(60), `svc_${'a'.repeat(60)}`],
  ])('%j is meant as %s', (text, username) => {
    expect(readServiceName(text)).toEqual({ username });
    expect(isServiceAccountName(username)).toBe(true);
  });

  it.each(['', 'svc_', 'a b', 'ä', 'a/b', 'a~b', `svc_${'a'.repeat(61)}`, 'ｓvc_a', 'a\n'])('%j is none', (text) => {
    expect(readServiceName(text)).toHaveProperty('fault');
    expect(isServiceAccountName(text)).toBe(false);
  });

  it('is one of the stack in any case, and the canary is not shown', () => {
    expect(['svc_api', 'SVC_NodeRed', 'svc_probe', 'svc_canary', 'svc_api2'].map(isOwnServiceAccount)).toEqual([
      true,
      true,
      true,
      true,
      false,
    ]);
    expect(['svc_x', 'SVC_CANARY', 'svc_canary2', 'ada'].map(isShownServiceAccount)).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });
});

it('the kind of a service account is what its attribute says, data for anything else, and admin for svc_api', () => {
  const kind = (username: string, value?: unknown): string =>
    kindOf({ username, attributes: { holdfast_kind: value } });
  expect([kind('svc_x', 'admin'), kind('svc_x', 'data'), kind('svc_x'), kind('svc_x', true), kind('svc_api')]).toEqual([
    'admin',
    'data',
    'data',
    'data',
    'admin',
  ]);
});
