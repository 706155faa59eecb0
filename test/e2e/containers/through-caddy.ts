// Requests to the light stack as the world sends them: to the published port, with the name of a
// host, from an address of choice.

import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import { basic } from '../../http/fake-deps.ts';
import type { SharedLight } from './shared-light.ts';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

export interface Ask {
  method?: string;
  /** Before the stack's own name. */
  host?: string;
  port?: number;
  /** One of the engine's `clients`. */
  from?: string | undefined;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  body?: string;
}

/** Trusts the authority of the stack's public certificates, and no other. */
export function throughCaddy(light: SharedLight, path: string, options: Ask = {}): Promise<Answer> {
  const { method = 'GET', host = '', port = light.ports.https, from, headers = {}, json, body } = options;
  const servername = `${host === '' ? '' : `${host}.`}${light.env['SERVER_ADDRESS'] ?? ''}`;
  const sent = json === undefined ? body : JSON.stringify(json);
  return new Promise((resolve, reject) => {
    const asking = request(
      {
        host: light.engine.address,
        port,
        path,
        method,
        servername,
        ca: readFileSync(light.publicCa),
        agent: false,
        ...(from === undefined ? {} : { localAddress: from }),
        headers: {
          host: `${servername}:${String(port)}`,
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
          ...(sent === undefined ? {} : { 'content-length': String(Buffer.byteLength(sent)) }),
          ...headers,
        },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
      },
    );
    asking.on('error', reject);
    asking.end(sent);
  });
}

export const asWebadmin = ({ env: settings }: SharedLight): { authorization: string } => ({
  authorization: basic('webadmin', settings['CORE_WEBADMIN_PASSWORD'] ?? ''),
});

/** As webadmin; the answer must be a success. */
export async function administer<T>(light: SharedLight, path: string, options: Ask = {}): Promise<T> {
  const headers = { ...asWebadmin(light), ...options.headers };
  const { status, text } = await throughCaddy(light, path, { ...options, headers });
  if (status >= 300) throw new Error(`${options.method ?? 'GET'} ${path}: ${String(status)} ${text}`);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}
