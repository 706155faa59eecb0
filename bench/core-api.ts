// The core's API for a benchmark: as the account of management, over one kept connection.

import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import type { BenchStack } from './stack.ts';

export interface CoreApi {
  /** Resolves with the text of the answer; rejects unless it is a success. */
  ask(method: string, path: string, body?: string): Promise<string>;
  close(): void;
}

export function coreApi({ coreDirectory, corePort }: BenchStack): CoreApi {
  const file = (name: string): Buffer => readFileSync(join(coreDirectory, 'certs/files', name));
  const identity = { ca: file('ca.pem'), pfx: file('svc_api.p12'), passphrase: 'atakatak' };
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ...identity });
  const headers = { 'content-type': 'application/json' };
  return {
    close: () => agent.destroy(),
    ask: (method, path, body = '') =>
      new Promise((resolve, reject) => {
        const requested = request({ host: '127.0.0.1', port: corePort, agent, method, path, headers }, (answer) => {
          let text = '';
          answer.setEncoding('utf8');
          answer.on('data', (chunk: string) => (text += chunk));
          answer.on('end', () =>
            (answer.statusCode ?? 0) < 300 ? resolve(text) : reject(new Error(`${path}: ${answer.statusCode} ${text}`)),
          );
        });
        requested.on('error', reject);
        requested.end(body);
      }),
  };
}
