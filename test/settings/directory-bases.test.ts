import { describe, expect, it } from 'vitest';
import { basesOverlap, webBaseBeside } from '@holdfast/kit/directory';
import { loadSettings } from '../../shared/settings/load.ts';

const problemsOf = (values: Record<string, string>) =>
  loadSettings([{ source: 'environment', values }], 'embedded').problems;

describe('the two bases of the directory', () => {
  it.each([
    ['DC=core,DC=holdfast', 'DC=web,DC=holdfast'],
    ['dc=rescue,dc=example,dc=org', 'dc=web,dc=example,dc=org'],
    ['o=Fire District 7', 'o=web'],
    [String.raw`ou=a\,b+l=c,dc=x`, 'ou=web,dc=x'],
  ])('beside %s lies %s', (core, web) => {
    expect(webBaseBeside(core)).toBe(web);
  });

  it.each([
    ['DC=core,DC=holdfast', 'dc=CORE, dc=Holdfast', true],
    ['DC=core,DC=holdfast', 'DC=holdfast', true],
    ['DC=core,DC=holdfast', 'ou=web,DC=core,DC=holdfast', true],
    ['DC=core,DC=holdfast', 'DC=web,DC=holdfast', false],
  ])('%s and %s overlap: %s', (core, web, overlap) => {
    expect(basesOverlap({ core, web })).toBe(overlap);
  });

  it('are refused when they overlap, naming value and remedy', () => {
    expect(problemsOf({ LDAP_WEB_BASE_DN: 'DC=holdfast' })).toEqual([
      {
        name: 'LDAP_WEB_BASE_DN',
        value: 'DC=holdfast',
        message: 'overlaps LDAP_BASE_DN (DC=core,DC=holdfast): an enrollment password would then open the API',
        remedy: 'set it to a base beside the other, such as DC=web,DC=holdfast',
      },
    ]);
    expect(problemsOf({ LDAP_BASE_DN: 'dc=web,dc=example' })).toEqual([
      expect.objectContaining({
        name: 'LDAP_BASE_DN',
        remedy: expect.stringContaining('set LDAP_WEB_BASE_DN') as string,
      }),
    ]);
    expect(problemsOf({ LDAP_BASE_DN: 'dc=web,dc=example', LDAP_WEB_BASE_DN: 'dc=people,dc=example' })).toEqual([]);
    expect(problemsOf({ LDAP_BASE_DN: 'no name' })).toHaveLength(1);
  });
});
