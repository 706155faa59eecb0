// The address of the video relay, by what a page of a management process beside a stack shows with
// it and without.

import { expect } from 'vitest';
import { answersPing, eventually, secretsOf, type TestStack } from './embedded.ts';
import { listenOn, manageAlone } from './managed.ts';

export function relayBehaviours(beside: () => TestStack) {
  async function sessionAt({ api, webadmin }: ReturnType<TestStack['file']>): Promise<string> {
    const body = new URLSearchParams(webadmin);
    const answer = await fetch(`${api}/sign-in`, { method: 'POST', body, redirect: 'manual' });
    return answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  }

  return {
    RELAY_API_URL: async () => {
      const file = beside().file();
      const { SESSION_KEY = '', LDAP_BIND_PASSWORD = '' } = secretsOf(beside());
      const places = { DATABASE_URL: file.state_database, LDAP_URL: file.ldap.url, LDAP_BIND_PASSWORD };
      const cookie = await sessionAt(file);
      const relay = listenOn((_, response) => response.end('{"items":[{"name":"gate-camera","ready":true}]}'));
      const shows = async (env: Record<string, string>): Promise<boolean> => {
        let html = '';
        await manageAlone({ SESSION_KEY, ...places, ...env }, async (port) => {
          await eventually('it answers', () => answersPing(`http://127.0.0.1:${port}`), 10_000);
          html = await (await fetch(`http://127.0.0.1:${port}/video`, { headers: { cookie } })).text();
        });
        expect(html).toContain('<h1>Video</h1>');
        return html.includes('gate-camera');
      };
      try {
        expect(await shows({})).toBe(false);
        expect(await shows({ RELAY_API_URL: await relay.url })).toBe(true);
      } finally {
        relay.close();
      }
    },
  };
}
