// Full mutual handshakes on 8443 for each CPU-second of the core, against a bare Node TLS
// server with the same certificates and no checks of its own; resumed ones against full ones;
// enrollments a second.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { openAuthority } from '@holdfast/pki/authority';
import { certificateBundle } from '@holdfast/pki/pkcs12';
import { ensureServerCertificate } from '@holdfast/pki/server-certificate';
import { createEnrollmentApi } from '../packages/core/enrollment/app.ts';
import { EnrollmentAttempts } from '../packages/core/enrollment/events.ts';
import { certificateStore } from '../packages/core/store/certificates.ts';
import { appPassword } from './app-password.ts';
import { cpuSecondsOf, perSecond, report, reportAim, sampleOf, show } from './measure.ts';
import { benchStack, type BenchStack } from './stack.ts';
import type { TlsLoadOrder } from './tls-load.ts';
import { withoutProfiles } from '../packages/core/test/fake-core-profiles.ts';

const ROUNDS = 5;
const CONNECTIONS = 16;
const FOR_MS = 3_000;
const REQUESTS = 400;
const home = resolve(import.meta.dirname, '..');
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

export async function run(): Promise<void> {
  const stack = await benchStack();
  const place = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  const bare = await startBareTls(stack, '');
  const withList = await startBareTls(stack, `crl: read('ca.crl'),`);
  try {
    await handshakes(stack, bare, withList);
    await enrollments(stack, place);
  } finally {
    bare.end();
    withList.end();
    stack.stop();
    rmSync(place, { recursive: true, force: true });
  }
}

interface TlsServer {
  pid: number;
  port: number;
}

const filesOf = ({ coreDirectory }: BenchStack): string => join(coreDirectory, 'certs/files');

async function startBareTls(stack: BenchStack, more: string): Promise<TlsServer & { end(): void }> {
  const program = `
    const read = (name) => require('node:fs').readFileSync(${JSON.stringify(filesOf(stack))} + '/' + name);
    const server = require('node:tls').createServer({ cert: read('takserver.pem'), key: read('takserver.key'), ca: read('ca.pem'),
      ${more} requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.2' }, (socket) => socket.on('error', () => {}).once('data', () => socket.end('HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n')).resume());
    server.listen(0, '127.0.0.1', () => process.stdout.write(String(server.address().port)));`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  return { pid: child.pid ?? 0, port: Number(port.toString()), end: () => child.kill('SIGKILL') };
}

/** Handshakes for each CPU-second of the server. */
async function perCpuSecond(stack: BenchStack, { pid, port }: TlsServer, resumed: boolean): Promise<number> {
  const file = (name: string): string => join(filesOf(stack), name);
  const order: TlsLoadOrder = {
    port,
    ca: file('ca.pem'),
    certificate: file('svc_api.pem'),
    key: file('svc_api.key'),
    resumed,
    connections: CONNECTIONS,
    forMs: FOR_MS,
  };
  const before = cpuSecondsOf(pid);
  const { stdout } = await promisify(execFile)(process.execPath, [
    join(home, 'bench/tls-load.ts'),
    JSON.stringify(order),
  ]);
  return Number(stdout) / (cpuSecondsOf(pid) - before);
}

async function handshakes(stack: BenchStack, bare: TlsServer, withList: TlsServer): Promise<void> {
  const core = { pid: stack.pid('core'), port: stack.corePort };
  const figures: Record<'core' | 'bare' | 'list' | 'resumed' | 'bareResumed', number[]> = {
    core: [],
    bare: [],
    list: [],
    resumed: [],
    bareResumed: [],
  };
  await perCpuSecond(stack, core, false);
  await perCpuSecond(stack, bare, false);
  for (let round = 0; round < ROUNDS; round++) {
    figures.bare.push(await perCpuSecond(stack, bare, false));
    figures.core.push(await perCpuSecond(stack, core, false));
    figures.list.push(await perCpuSecond(stack, withList, false));
    figures.resumed.push(await perCpuSecond(stack, core, true));
    figures.bareResumed.push(await perCpuSecond(stack, bare, true));
  }
  const unit = 'for each CPU-second';
  const median = (values: number[]): number => sampleOf(values).median;
  const [own, other] = [median(figures.core), median(figures.bare)];
  report('handshake: full, core', show(sampleOf(figures.core), unit));
  report('handshake: full, bare TLS server', show(sampleOf(figures.bare), unit));
  report('handshake: full, bare with the option crl', show(sampleOf(figures.list), unit));
  report('handshake: resumed, core', show(sampleOf(figures.resumed), unit));
  report('handshake: resumed, bare TLS server', show(sampleOf(figures.bareResumed), unit));
  reportAim('handshake: full, ratio to bare', own / other, 0.9, '', { least: true });
  reportAim('handshake: resumed, ratio to full', median(figures.resumed) / own, 6, '', { least: true });
}

/** Requests of OpenSSL, each with a key of its own. */
async function signingRequests(place: string, user: string, count: number): Promise<string[]> {
  mkdirSync(place, { recursive: true });
  const one = async (n: number): Promise<string> => {
    const file = join(place, `${n}.csr`);
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384', '-nodes', '-keyout', '/dev/null'];
    await promisify(execFile)('openssl', [
      'req',
      '-new',
      ...key,
      '-out',
      file,
      '-subj',
      `/O=Holdfast/OU=CoT/CN=${user}`,
    ]);
    return readFileSync(file, 'utf8');
  };
  const made: string[] = [];
  for (let n = 0; n < count; n += 8) made.push(...(await Promise.all(Array.from({ length: 8 }, (_, k) => one(n + k)))));
  return made;
}

async function enrollments(stack: BenchStack, place: string): Promise<void> {
  const user = 'bench';
  const password = await appPassword(stack, user);
  const requests = await signingRequests(place, user, REQUESTS);
  const agent = new Agent({
    keepAlive: true,
    maxSockets: CONNECTIONS,
    ca: readFileSync(join(filesOf(stack), 'ca.pem')),
  });
  const next = (): string => requests[Math.floor(Math.random() * requests.length)] ?? '';
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  const enroll = (): Promise<void> =>
    new Promise((done, reject) => {
      const url = `https://127.0.0.1:${stack.enrollmentPort}/Marti/api/tls/signClient/v2?clientUid=bench&version=3`;
      const sent = request(url, { agent, method: 'POST', headers: { authorization } }, (response) => {
        response.resume().once('end', () => {
          if (response.statusCode === 200) done();
          else reject(new Error(`enrollment: ${response.statusCode}`));
        });
      });
      sent.once('error', reject).end(next());
    });
  const callers = Array.from({ length: CONNECTIONS }, () => enroll);
  report('handshake: enrollments by an app password', `${(await perSecond(callers)).toFixed(0)} a second`);
  agent.destroy();
  report(
    'handshake: the same without the bind',
    `${(await withoutBind(stack, place, user, next)).toFixed(0)} a second`,
  );
}

/**
 * The app of 8446 in this process, on the database of the stack, with a directory that believes
 * everybody.
 */
async function withoutBind(stack: BenchStack, place: string, user: string, next: () => string): Promise<number> {
  const directory = join(place, 'core');
  await ensureServerCertificate(directory, ['127.0.0.1'], new Date());
  const entry = { dn: `cn=${user}`, username: user, isActive: true, groups: [] };
  const url = new Secret(stack.database);
  const api = createEnrollmentApi({
    directory: { signIn: async () => entry },
    authority: await openAuthority(directory, { validityDays: 365 }),
    certificates: certificateStore(keptDatabase(url, { name: 'bench', called: 'the database', variable: 'its URL' })),
    bundle: certificateBundle,
    adminApi: () => new Response(null, { status: 403 }),
    profiles: withoutProfiles(() => new Date()),
    attempts: new EnrollmentAttempts(() => new Date()),
    log: silent,
    now: () => new Date(),
    steadyMs: () => performance.now(),
  });
  const headers = { authorization: `Basic ${Buffer.from(`${user}:any`).toString('base64')}` };
  const enroll = async (): Promise<void> => {
    const address = 'https://127.0.0.1/Marti/api/tls/signClient/v2?clientUid=bench&version=3';
    const response = await api(new Request(address, { method: 'POST', headers, body: next() }), {
      clientAddress: '127.0.0.1',
      secure: true,
    });
    if (response.status !== 200) throw new Error(`enrollment: ${response.status} ${await response.text()}`);
  };
  return perSecond(Array.from({ length: CONNECTIONS }, () => enroll));
}
