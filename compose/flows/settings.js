// Settings of the flow engine (Node-RED), in containers and embedded. Nothing of it answers anybody
// who has not signed in: who comes through the reverse proxy is known by a header with a secret
// that the two share, elsewhere the engine asks itself.

'use strict';

const { createHash, randomBytes, timingSafeEqual } = require('node:crypto');
const { closeSync, constants, copyFileSync, existsSync, readFileSync } = require('node:fs');
const http = require('node:http');
const { dirname, join } = require('node:path');
const { runFeeds } = require('./feeds.js');

const TOKEN_HEADER = 'x-holdfast-flows';
const LET_IN_BY = [TOKEN_HEADER, 'authorization'];
const COMMS = '/comms';
const LOOK_EVERY_MS = 5_000;
/** Of every door of Holdfast that takes a password. */
const FAILURES = 10;
const COUNTED_MS = 5 * 60_000;
const LOCKED_MS = 15 * 60_000;
const MOST_ADDRESSES = 10_000;
const LEVELS = { 10: 'error', 20: 'error', 30: 'warn', 40: 'info', 50: 'debug', 60: 'debug' };

const { token, credentialKey, password } = secrets();
const port = Number(process.env.FLOWS_PORT || 1880);
/** Of the proxy; without one this process alone knows it. */
const shownToken = token || randomBytes(32).toString('base64url');
const proxied = { username: 'holdfast', permissions: '*' };
const admin = { username: 'admin', permissions: '*' };

/** Handed over by a descriptor: what stands in the environment, every flow can read. */
function secrets() {
  const descriptor = Number(process.env.HOLDFAST_FLOWS_SECRETS);
  delete process.env.HOLDFAST_FLOWS_SECRETS;
  for (const name of ['FLOWS_TOKEN', 'FLOWS_CREDENTIAL_KEY', 'FLOWS_PASSWORD']) delete process.env[name];
  if (!Number.isInteger(descriptor) || descriptor < 3)
    throw new Error('HOLDFAST_FLOWS_SECRETS names no descriptor: start the flow engine by compose/flows/start.sh');
  const [token = '', credentialKey = '', password = ''] = readFileSync(descriptor, 'utf8').split('\n');
  closeSync(descriptor);
  if (token === '' && password === '')
    throw new Error('Neither FLOWS_TOKEN nor FLOWS_PASSWORD is set: nobody could sign in. Run ./scripts/setup.sh');
  return { token, credentialKey, password };
}

function isSame(a, b) {
  const [one, other] = [a, b].map((text) => createHash('sha256').update(String(text)).digest());
  return timingSafeEqual(one, other);
}

function isProxied({ headers }) {
  return isSame(headers[TOKEN_HEADER] ?? '', shownToken);
}

function isAdmin(username, given) {
  return password !== '' && username === admin.username && isSame(given, password);
}

/** Asked once for each request: every failure counts. */
function hasPassword({ headers, socket }) {
  const [, encoded = ''] = /^Basic +([A-Za-z0-9+/=]+)$/i.exec(headers.authorization ?? '') ?? [];
  const [, username, given] = /^([^:]*):([^]*)$/.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
  if (username === undefined || isLocked(socket.remoteAddress)) return false;
  const isRight = isAdmin(username, given);
  if (!isRight) countFailure(socket.remoteAddress);
  return isRight;
}

/** By address: the times of failures that count, the newest last. */
const failures = new Map();

function isLocked(address) {
  const times = failures.get(address) ?? [];
  return times.length >= FAILURES && Date.now() - times.at(-1) < LOCKED_MS;
}

function countFailure(address) {
  const now = Date.now();
  const times = (failures.get(address) ?? []).filter((time) => now - time < COUNTED_MS);
  failures.delete(address);
  failures.set(address, [...times, now]);
  if (failures.size > MOST_ADDRESSES) failures.delete(failures.keys().next().value);
}

/**
 * The editor and its channel have a sign-in of their own, where there is a password; what flows
 * offer has none.
 */
function mayAsk(request, isUpgrade) {
  if (isProxied(request)) return true;
  if (password === '') return false;
  return !isUpgrade || request.url.split('?')[0] === COMMS || hasPassword(request);
}

/**
 * In front of the editor, of its API, of what flows offer by HTTP, and of every WebSocket, which no
 * setting guards.
 */
function guarded(server) {
  const { emit } = server;
  server.emit = function (event, request, answer, ...more) {
    const isUpgrade = event === 'upgrade';
    if ((event === 'request' || isUpgrade) && !mayAsk(request, isUpgrade)) return refuse(answer, isUpgrade);
    return emit.call(this, event, request, answer, ...more);
  };
  server.once('listening', () => process.send?.({ kind: 'listening' }));
  return server;
}

function refuse(answer, isUpgrade) {
  if (isUpgrade) return answer.end('HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
  return answer.writeHead(401, { 'Content-Type': 'text/plain', 'Cache-Control': 'no-store' }).end('Sign in.\n');
}

const { createServer } = http;
http.createServer = (...order) => {
  http.createServer = createServer;
  return guarded(createServer(...order));
};

/** In front of what flows offer by HTTP: they get the request, and so whatever it was let in by. */
function letIn(request, response, next) {
  if (!isProxied(request) && !hasPassword(request))
    return response.set('WWW-Authenticate', 'Basic realm="flows"').sendStatus(401);
  const { headers, rawHeaders } = request;
  for (const name of LET_IN_BY) delete headers[name];
  // Taken out, they would be missed: Node reads others again from this list, by their number.
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (LET_IN_BY.includes(rawHeaders[at].toLowerCase())) rawHeaders[at + 1] = '';
  return next();
}

/** The rest of its node is known by the time that it is called. */
function makeStartingFlow(directory) {
  const file = join(directory, 'flows.json');
  if (!existsSync(file)) copyFileSync(join(__dirname, 'starting-flow.json'), file, constants.COPYFILE_EXCL);
}

function certificateText() {
  const files = [process.env.COT_CERTIFICATE, process.env.COT_CA];
  return files.map((file) => textIn(file)).join('\n');
}

/** One that is missing, or not ours to read, is none yet. */
function textIn(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/**
 * Nodes read a certificate when they start: with a new one, all flows start again from what is
 * deployed.
 */
function watchCertificate() {
  let known = certificateText();
  setInterval(async () => {
    try {
      const now = certificateText();
      if (now === known) return;
      const answer = await fetch(`http://127.0.0.1:${port}/flows`, {
        method: 'POST',
        headers: {
          [TOKEN_HEADER]: shownToken,
          'Content-Type': 'application/json',
          'Node-RED-API-Version': 'v2',
          'Node-RED-Deployment-Type': 'reload',
        },
        body: '{}',
      });
      if (answer.ok) known = now;
      say('warn', answer.ok ? 'new certificate, flows started again' : `flows were not reloaded: ${answer.status}`);
    } catch (error) {
      say('warn', `flows were not reloaded: ${error.message}`);
    }
  }, LOOK_EVERY_MS).unref();
}

function say(level, message, more = {}) {
  const line = { time: new Date().toISOString(), level, role: 'flows', event: 'flows.log', message, ...more };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** An error of a function node is none of this realm's. */
function textOf(message) {
  if (typeof message === 'string') return message;
  return message?.stack ?? message?.message ?? JSON.stringify(message);
}

const userDir = process.env.FLOWS_DIR || '/data';
makeStartingFlow(userDir);
watchCertificate();
const feeds = runFeeds({
  directory: dirname(process.env.COT_CA ?? ''),
  url: `http://127.0.0.1:${port}/flows`,
  headers: { [TOKEN_HEADER]: shownToken, 'Node-RED-API-Version': 'v2' },
  say,
});

module.exports = {
  userDir,
  flowFile: 'flows.json',
  flowFilePretty: true,
  ...(credentialKey === '' ? {} : { credentialSecret: credentialKey }),

  uiPort: port,
  uiHost: process.env.FLOWS_ADDRESS || '0.0.0.0',
  adminAuth: {
    type: 'credentials',
    users: async (username) => (username === admin.username && password !== '' ? admin : null),
    authenticate: async (username, given) => (isAdmin(username, given) ? admin : null),
    tokenHeader: TOKEN_HEADER,
    tokens: async (given) => (isSame(given, shownToken) ? proxied : null),
  },
  httpNodeAuth: letIn,
  httpStatic: false,
  httpRequestTimeout: 60_000,

  telemetry: { enabled: false, updateNotification: false },
  diagnostics: { enabled: false, ui: false },
  runtimeState: { enabled: true, ui: true },
  // Nodes and modules come from the command line on the server (docs/flows.md), never by a click.
  externalModules: {
    autoInstall: false,
    palette: { allowInstall: false, allowUpdate: false, allowUpload: false },
    modules: { allowInstall: false },
  },
  functionExternalModules: false,
  functionTimeout: 30,
  functionGlobalContext: { holdfastFeeds: feeds },
  exportGlobalContextKeys: false,
  contextStorage: { default: { module: 'localfilesystem' }, memory: { module: 'memory' } },
  debugMaxLength: 4000,
  editorTheme: {
    tours: false,
    projects: { enabled: false },
    // Behind the proxy one signs out at the portal.
    userMenu: password !== '',
    codeEditor: { lib: 'monaco' },
  },
  logging: {
    console: { level: 'off', metrics: false, audit: false },
    lines: {
      level: 'info',
      metrics: false,
      audit: false,
      handler: () => (entry) =>
        say(LEVELS[entry.level] ?? 'info', textOf(entry.msg), {
          ...(entry.type === undefined ? {} : { node: entry.type }),
          ...(entry.id === undefined ? {} : { id: entry.id }),
        }),
    },
  },
};
