// HTTP requests that come from an address of this machine's choice: all of 127.0.0.0/8 is its own.

import { type IncomingHttpHeaders, request } from 'node:http';

export interface RequestOrigin {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

export interface AskOptions {
  method?: string;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as a form. */
  form?: Record<string, string>;
}

export async function askFrom(localAddress: string, url: string, options: AskOptions = {}): Promise<RequestOrigin> {
  const { method = 'GET', headers = {}, json, form } = options;
  const body = form === undefined ? json && JSON.stringify(json) : new URLSearchParams(form).toString();
  const type = form === undefined ? 'application/json' : 'application/x-www-form-urlencoded';
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      {
        method,
        localAddress,
        agent: false,
        headers: { ...(body === undefined ? {} : { 'content-type': type }), ...headers },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}
