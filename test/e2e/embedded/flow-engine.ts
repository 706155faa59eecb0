// The real flow engine for tests: by its own HTTP API, with a flow that tells what flows can see.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { home } from './embedded.ts';

export const NODE_RED = join(home, 'compose/flows/node_modules/node-red');

/** Why its tests are skipped: scripts/test.sh installs it, where npm can be asked. */
export const flowsMissing = existsSync(NODE_RED) ? undefined : 'Node-RED is not installed';

export interface FlowNode {
  id: string;
  type: string;
  z?: string;
  wires?: string[][];
  [property: string]: unknown;
}

/** What `GET /told` of the flow below answers. */
export interface Report {
  events: string[];
  environment: Record<string, string | undefined>;
  headers: Record<string, string>;
  headersDistinct: Record<string, string[]>;
  rawHeaders: string[];
}

export const REQUESTED = ['FLOWS_TOKEN', 'FLOWS_PASSWORD', 'FLOWS_CREDENTIAL_KEY', 'HOLDFAST_FLOWS_SECRETS', 'PGUSER'];

const COLLECT = `const events = flow.get('events', 'memory') || [];
flow.set('events', [...events, msg.payload], 'memory');`;
const TELL = `const names = ${JSON.stringify(REQUESTED)};
const environment = Object.fromEntries(names.map((name) => [name, env.get(name)]));
const { headers, headersDistinct, rawHeaders } = msg.req;
msg.payload = { events: flow.get('events', 'memory') || [], environment, headers, headersDistinct, rawHeaders };
return msg;`;

/**
 * The flow of a new engine (a node without a place on the tab would be no node of it), which
 * besides answers `GET /told`, sends what `POST /say` brings, fails after `GET /fail`, and has a
 * WebSocket at /live.
 */
export function withTelling(flow: FlowNode[]): FlowNode[] {
  const z = flow.find(({ type }) => type === 'tab')?.id ?? '';
  const code = (id: string, func: string, wires: string[][]): FlowNode => ({
    id,
    type: 'function',
    z,
    x: 9,
    y: 9,
    name: id,
    func,
    outputs: wires.length,
    libs: [],
    wires,
  });
  return [
    ...flow.map((node) => (node.id === 'holdfast-split' ? { ...node, wires: [['t-collect']] } : node)),
    code('t-collect', COLLECT, []),
    {
      id: 't-told',
      type: 'http in',
      z,
      x: 9,
      y: 9,
      name: '',
      url: '/told',
      method: 'get',
      upload: false,
      wires: [['t-tell']],
    },
    code('t-tell', TELL, [['t-answer']]),
    { id: 't-answer', type: 'http response', z, x: 9, y: 9, name: '', statusCode: '', headers: {}, wires: [] },
    {
      id: 't-say',
      type: 'http in',
      z,
      x: 9,
      y: 9,
      name: '',
      url: '/say',
      method: 'post',
      upload: false,
      wires: [['t-xml']],
    },
    {
      id: 't-fail',
      type: 'http in',
      z,
      x: 9,
      y: 9,
      name: '',
      url: '/fail',
      method: 'get',
      upload: false,
      wires: [['t-throw']],
    },
    code('t-throw', "node.send(msg); throw new Error('this flow has failed');", [['t-answer']]),
    code('t-xml', 'return [{ payload: msg.payload.xml }, msg];', [['holdfast-send'], ['t-answer']]),
    { id: 't-listener', type: 'websocket-listener', path: '/live', wholemsg: 'false' },
    { id: 't-live', type: 'websocket in', z, x: 9, y: 9, name: '', server: 't-listener', client: '', wires: [[]] },
  ];
}

/** Asked at `url` with these headers. */
export async function deployTelling(url: string, headers: Record<string, string>): Promise<void> {
  const flow = (await (await fetch(`${url}flows`, { headers })).json()) as FlowNode[];
  const answer = await fetch(`${url}flows`, {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify(withTelling(flow)),
  });
  if (answer.status !== 204) throw new Error(`the flow was not deployed: ${answer.status} ${await answer.text()}`);
}

/** A bearer token of the engine's own sign-in, or the status of the refusal. */
export async function signIn(url: string, username: string, password: string): Promise<string | number> {
  const requested = { client_id: 'node-red-editor', grant_type: 'password', scope: '*', username, password };
  const answer = await fetch(`${url}auth/token`, { method: 'POST', body: new URLSearchParams(requested) });
  return answer.ok ? ((await answer.json()) as { access_token: string }).access_token : answer.status;
}
