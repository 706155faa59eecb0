// What the tests know of a stack: the file that describes it, and a handle on it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface CoreAddresses {
  api: string;
  enrollment: string;
  streaming: string;
}

export interface StackFile {
  started_with?: Record<string, unknown>;
  api: string;
  console: string;
  portal: string;
  core: CoreAddresses & { nodes?: CoreAddresses[] };
  ldap: { url: string; base_dn: string };
  database: string;
  state_database: string;
  ca_certificate: string;
  api_certificate: { file: string; password: string };
  webadmin: { username: string; password: string };
  pids: { role: string; pid: number }[];
  /**
   * Of a stack that stands: what it was started with, and the address that it sees requests come
   * from.
   */
  settings?: Record<string, string>;
  seen_as?: string;
}

export interface Outcome {
  code: number | null;
  output: string;
}

export interface RunOptions {
  env?: Record<string, string>;
  /** Words before the command, such as setpriv with its options. */
  under?: string[];
}

export interface TestStack {
  data: string;
  offset: number;
  /** Starts detached; `args` and `env` are added. */
  start(args?: string[], options?: RunOptions): Promise<Outcome>;
  file(): StackFile;
  pid(role: string): number;
}

/** What the stack has generated for itself. */
export function secretsOf({ data }: Pick<TestStack, 'data'>): Record<string, string> {
  return JSON.parse(readFileSync(join(data, 'secrets.json'), 'utf8')) as Record<string, string>;
}
