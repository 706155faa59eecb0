// The address of the video relay, by what a page of a management process beside a stack shows with
// it and without.

import { expect } from 'vitest';
import { sessionOf } from '../browser/house.ts';
import type { TestStack } from './embedded.ts';
import { listenOn, managed } from './managed.ts';

/** `beside`: the running stack and the settings of a process beside it. */
export function relayBehaviours(beside: () => { stack: TestStack; env: Record<string, string> }) {
  return {
    RELAY_API_URL: async () => {
      const { stack, env } = beside();
      const { api, webadmin } = stack.file();
      const cookie = `holdfast=${await sessionOf(api, webadmin)}`;
      const relay = listenOn((_, response) => response.end('{"items":[{"name":"gate-camera","ready":true}]}'));
      const shows = async (more: Record<string, string>): Promise<boolean> => {
        const address = `http://127.0.0.1:${await managed({ ...env, ...more })}/video`;
        const html = await (await fetch(address, { headers: { cookie } })).text();
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
