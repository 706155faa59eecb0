// The role `preflight` of our image: every setting that management needs, and no secret that others
// could know.

import { describe, expect, it } from 'vitest';
import { generatePassword } from '@holdfast/stack/secrets';
import { loadSettings } from '../../../shared/settings/load.ts';
import { describeProblem } from '../../../shared/settings/setting.ts';
import { SETTING_NAMES, SETTINGS } from '../../../shared/settings/table.ts';
import { planContainer } from '../containers/plan.ts';
import { secretProblems } from '../containers/role-settings.ts';
import { runs } from '../../../test/support/runs.ts';

const SECRETS = SETTING_NAMES.filter((name) => SETTINGS[name].example === 'generated');
const GOOD: Record<string, string> = {
  HOLDFAST_STACK: 'light',
  SERVER_ADDRESS: 'cot.example.org',
  DEPLOY_MODE: 'subdomain',
  IDENTITY_TOKEN: generatePassword(),
  ...Object.fromEntries(SECRETS.map((name) => [name, generatePassword()])),
};

function problemsOf(values: Record<string, string>): string[] {
  const plan = planContainer(process.cwd(), 'preflight', { ...GOOD, ...values });
  return Array.isArray(plan) ? plan.map(describeProblem) : [];
}

describe('the preflight', () => {
  it('lets settings pass that set-up has made', () => {
    expect(problemsOf({})).toEqual([]);
  });

  it('lets no generated secret be taken for a placeholder', () => {
    for (let count = 0; count < runs(300); count++)
      expect(problemsOf({ CORE_WEBADMIN_PASSWORD: generatePassword() })).toEqual([]);
  });

  it.each([
    'changeme',
    'ChangeMe-now-please',
    'atakatak',
    'atakatakatak',
    'pass4marti',
    'your-password-here',
    '<password>',
    'generated',
    'REPLACE_ME',
    'password',
    'admin',
    'xxxxxxxxxxxxxxxx',
    'example-password-1',
  ])('refuses %s, without quoting it', (value) => {
    const problems = problemsOf({ CORE_WEBADMIN_PASSWORD: value });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(/^CORE_WEBADMIN_PASSWORD=\*\*\*: is a placeholder or .*\n {4}Remedy: /);
    expect(problems[0]).not.toContain(value === 'generated' || value === 'password' ? `=${value}` : value);
  });

  it('refuses what the template gives as an example', () => {
    const example = SETTINGS.METRICS_TOKEN.example;
    expect(problemsOf({ METRICS_TOKEN: example })).toEqual([
      expect.stringMatching(/^METRICS_TOKEN=\*\*\*: is a placeholder/),
    ]);
  });

  it('refuses a short secret with the length that is wanted', () => {
    expect(problemsOf({ LDAP_BIND_PASSWORD: 'sh0rtOne!' })).toEqual([
      expect.stringMatching(/^LDAP_BIND_PASSWORD=\*\*\*: is too short: use at least 12 characters/),
    ]);
  });

  it('says everything at once: what is missing, what is wrong and what is weak, each once', () => {
    const problems = problemsOf({
      SERVER_ADDRESS: '',
      DEPLOY_MODE: 'both',
      CORE_DB_PASSWORD: 'changeme',
      AUDIT_KEY: 'short',
    });
    expect(problems.map((text) => text.split(/[=:]/, 1).join('')).toSorted()).toEqual([
      'AUDIT_KEY',
      'CORE_DB_PASSWORD',
      'DEPLOY_MODE',
      'SERVER_ADDRESS',
    ]);
  });

  it('says nothing of secrets that are not set', () => {
    expect(secretProblems(loadSettings([], 'light').settings)).toEqual([]);
  });
});
