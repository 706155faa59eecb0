// UserManager.jar certmod: the right of an administrator for a certificate, written into
// UserAuthenticationFile.xml. Without --offline it needs a server that runs.

import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { EMPTY_USERS, readUsersDocument, withEntry, withoutEntry } from '@holdfast/core/admin/users-document';
import { HOME, Refused } from './core-config.ts';
import type { JavaCall } from './java-call.ts';

const USERS = `${HOME}/UserAuthenticationFile.xml`;

export async function runUserManager({ arguments: words }: JavaCall): Promise<void> {
  const offline = words[0] === '--offline';
  const [command, ...rest] = offline ? words.slice(1) : words;
  if (!offline && !(await isUp())) throw new Refused('Unable to connect to the server: is it running?');
  const last = rest.at(-1) ?? '';
  const text = existsSync(USERS) ? readFileSync(USERS, 'utf8') : EMPTY_USERS;
  if (command === 'certmod') {
    if (!existsSync(last)) throw new Refused(`There is no certificate ${last}`);
    const certificate = new X509Certificate(readFileSync(last));
    const identifier = /(?:^|\n)CN=([^\n]+)/.exec(certificate.subject)?.[1] ?? '';
    if (rest.includes('-D')) return write(withoutEntry(readUsersDocument(text), identifier) ?? text);
    const role = rest.includes('-A') ? 'ROLE_ADMIN' : 'ROLE_ANONYMOUS';
    return write(withEntry(readUsersDocument(text), { identifier, fingerprint: certificate.fingerprint256, role }));
  }
  if (command === 'usermod' && rest.includes('-D')) return write(withoutEntry(readUsersDocument(text), last) ?? text);
  throw new Refused(`Invalid command: ${words.join(' ')}`);
}

function write(text: string): void {
  writeFileSync(USERS, text);
}

function isUp(): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(8089, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.end());
  });
}
