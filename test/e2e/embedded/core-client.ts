// A device for the tests of the core: a key and a request by OpenSSL, enrollment and questions by
// curl.

import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { secretsOf, type TestStack } from './stack-file.ts';

const execute = promisify(execFile);

export interface Device {
  certificateFile: string;
  keyFile: string;
  /** `AA:BB:…` */
  hash: string;
}

/** A core as its clients see it. */
export interface CorePlace {
  api: string;
  enrollment: string;
  streaming: string;
  /** The name in its certificate where the address has none of it. */
  serverName?: string;
  /** {data_dir} */
  directory: string;
}

export function coreOf(stack: TestStack): CorePlace {
  return { ...stack.file().core, directory: join(stack.data, 'core') };
}

const fileOf = ({ directory }: CorePlace, name: string): string => join(directory, 'certs/files', name);

export interface CurlAnswer {
  /** 0 when no answer came. */
  status: number;
  body: string;
  headers: string;
  /** Of curl itself. */
  code: number;
}

/** A directory below the one of the stack: it goes with it. */
export function workDirectory({ data }: TestStack): string {
  return mkdtempSync(join(data, 'test-'));
}

/** `args` come after what every call has: the CA, silence, the head of the answer. */
export async function curl(core: CorePlace, args: readonly string[]): Promise<CurlAnswer> {
  const all = ['-sS', '-i', '--max-time', '20', '--cacert', fileOf(core, 'ca.pem'), ...args];
  const done = await execute('curl', all).then(
    ({ stdout }) => ({ stdout, code: 0 }),
    (error: { stdout?: string; code?: number }) => ({ stdout: error.stdout ?? '', code: error.code ?? -1 }),
  );
  const [headers = '', ...rest] = done.stdout.split('\r\n\r\n');
  const status = Number(/^HTTP\/[12](?:\.\d)? (\d{3})/.exec(headers)?.[1] ?? 0);
  return { status, headers, body: rest.join('\r\n\r\n'), code: done.code };
}

/** Asks 8443 with a certificate. */
export const asDevice = (
  core: CorePlace,
  { certificateFile, keyFile }: Omit<Device, 'hash'>,
  path: string,
  more: string[] = [],
) => curl(core, ['--cert', certificateFile, '--key', keyFile, `${core.api}${path}`, ...more]);

/** The key and the request of a device, in `directory`. */
export async function signingRequest(
  directory: string,
  user: string,
  name = user,
): Promise<{ keyFile: string; requestFile: string }> {
  const [keyFile, requestFile] = [join(directory, `${name}.key`), join(directory, `${name}.csr`)];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384', '-nodes', '-keyout', keyFile];
  await execute('openssl', ['req', '-new', ...key, '-out', requestFile, '-subj', `/O=Holdfast/OU=CoT/CN=${user}`]);
  return { keyFile, requestFile };
}

export async function sendRequest(
  core: CorePlace,
  user: string,
  password: string,
  requestFile: string,
  clientUid: string,
): Promise<CurlAnswer> {
  return curl(core, [
    '-u',
    `${user}:${password}`,
    // A TAK Server reads no body that calls itself a form, as curl's do.
    '-H',
    'Content-Type: application/octet-stream',
    '--data-binary',
    `@${requestFile}`,
    `${core.enrollment}/Marti/api/tls/signClient/v2?clientUid=${clientUid}&version=3`,
  ]);
}

/** Enrolls by password; throws when the core refuses. */
export async function enroll(
  core: CorePlace,
  directory: string,
  user: string,
  password: string,
  name = user,
): Promise<Device> {
  const { keyFile, requestFile } = await signingRequest(directory, user, name);
  const { status, body } = await sendRequest(core, user, password, requestFile, name);
  if (status !== 200) throw new Error(`enrollment of ${user}: ${status} ${body}`);
  return { keyFile, ...(await keptCertificate(directory, name, body)) };
}

/** The certificate out of the answer of `signClient/v2`, as a file. */
export async function keptCertificate(
  directory: string,
  name: string,
  body: string,
): Promise<{ certificateFile: string; hash: string }> {
  const { signedCert } = JSON.parse(body) as { signedCert: string };
  const certificateFile = join(directory, `${name}.pem`);
  writeFileSync(certificateFile, `-----BEGIN CERTIFICATE-----\n${signedCert.trim()}\n-----END CERTIFICATE-----\n`);
  const { stdout } = await execute('openssl', ['x509', '-in', certificateFile, '-noout', '-fingerprint', '-sha256']);
  return { certificateFile, hash: stdout.trim().split('=')[1] ?? '' };
}

/** `svc_api`, by which an administrator of the core is asked for. */
export async function apiDevice(core: CorePlace, directory: string): Promise<Omit<Device, 'hash'>> {
  const out = join(directory, 'svc_api.both.pem');
  const bundle = fileOf(core, 'svc_api.p12');
  await execute('openssl', ['pkcs12', '-in', bundle, '-passin', 'pass:atakatak', '-nodes', '-out', out]);
  return { certificateFile: out, keyFile: out };
}

/** What OpenSSL says of a certificate, the CA and the revocation list: `OK`, or why not. */
export async function verdictOf(core: CorePlace, certificateFile: string): Promise<string> {
  const args = [
    'verify',
    '-crl_check',
    '-CAfile',
    fileOf(core, 'ca.pem'),
    '-CRLfile',
    fileOf(core, 'ca.crl'),
    certificateFile,
  ];
  return execute('openssl', args).then(
    ({ stdout }) => (stdout.trim().endsWith(': OK') ? 'OK' : stdout),
    (error: { stderr?: string }) =>
      /error \d+ at \d+ depth lookup: (.*)/.exec(error.stderr ?? '')?.[1] ?? String(error.stderr),
  );
}

/** Serial numbers in the revocation list, which OpenSSL has verified; lower-case hex. */
export async function listedSerials(core: CorePlace): Promise<string[]> {
  const args = ['crl', '-in', fileOf(core, 'ca.crl'), '-noout', '-text', '-CAfile', fileOf(core, 'ca.pem')];
  const { stdout, stderr } = await execute('openssl', args);
  if (!stderr.includes('verify OK')) throw new Error(`the list does not verify: ${stderr}`);
  return [...stdout.matchAll(/Serial Number: ([0-9A-F]+)/g)].map(([, serial = '']) => serial.toLowerCase());
}

export async function serialOf(certificateFile: string): Promise<string> {
  const { stdout } = await execute('openssl', ['x509', '-in', certificateFile, '-noout', '-serial']);
  return (stdout.trim().split('=')[1] ?? '').toLowerCase();
}

/** A person with a password, by the identity provider's own API. */
export async function newPerson(stack: TestStack, username: string, password: string): Promise<number> {
  const { pk } = (await provider(stack, '/core/users/', { username, name: username, path: 'users' })) as { pk: number };
  await provider(stack, `/core/users/${pk}/set_password/`, { password });
  return pk;
}

/** A channel of these people: without one, devices hear nobody. */
export async function newChannel(stack: TestStack, name: string, users: readonly number[]): Promise<void> {
  await provider(stack, '/core/groups/', { name: `core_${name}`, users });
}

async function provider(stack: TestStack, path: string, body: object): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${9000 + stack.offset}/api/v3${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secretsOf(stack)['IDENTITY_TOKEN']}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}
